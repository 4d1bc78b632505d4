"use strict";
(() => {
  const { unit, side, colours, volumes } = JSON.parse(document.getElementById("senesce-maps").textContent);
  const frames = [...new Set(volumes.flatMap((volume) => volume.frames.map(([pulls]) => pulls)))].sort((a, b) => a - b);
  const slider = document.getElementById("frame");
  const label = document.getElementById("frame-label");
  const play = document.getElementById("play");
  const colour = (place) => {
    const at = (place - 1) / 254 * (colours.length - 1);
    const low = Math.min(colours.length - 2, Math.floor(at));
    return colours[low].map((from, channel) => from + (colours[low + 1][channel] - from) * (at - low));
  };
  // Each drawing of the last checkpoint gets a canvas in its place, which shows any.
  const panels = [...document.querySelectorAll("#maps .panels > div")];
  const shown = panels.map((panel, number) => {
    const volume = volumes.find((volume) => panel.querySelector("svg").getAttribute("aria-label") === `Map, ${volume.arm}, ${volume.role}`) ?? volumes[number];
    const title = document.createElement("p");
    title.className = "map-title";
    title.textContent = `${volume.arm}, ${volume.role}`;
    const canvas = document.createElement("canvas");
    canvas.width = side;
    canvas.height = side;
    canvas.setAttribute("role", "img");
    panel.replaceChildren(title, canvas);
    return { canvas, frames: new Map(volume.frames), name: title.textContent };
  });
  const draw = () => {
    const pulls = frames[Number(slider.value)];
    label.textContent = `${pulls.toLocaleString("en")} ${unit}`;
    for (const { canvas, frames, name } of shown) {
      const image = new ImageData(side, side);
      const text = frames.get(pulls) ?? "";
      for (let point = 0; point * 2 < text.length; point += 1) {
        const place = parseInt(text.slice(point * 2, point * 2 + 2), 16);
        if (place) image.data.set([...colour(place), 255], point * 4);
      }
      canvas.getContext("2d").putImageData(image, 0, 0);
      canvas.setAttribute("aria-label", `Map, ${name}, after ${pulls} ${unit}`);
    }
  };
  slider.max = frames.length - 1;
  slider.value = frames.length - 1;
  slider.addEventListener("input", draw);
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
  };
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (Number(slider.value) === frames.length - 1) slider.value = 0;
    play.textContent = "Stop";
    play.setAttribute("aria-pressed", "true");
    draw();
    timer = setInterval(() => {
      if (Number(slider.value) === frames.length - 1) return stop();
      slider.value = Number(slider.value) + 1;
      draw();
    }, 600);
  });
  document.querySelector(".film .scale i").style.background = `linear-gradient(90deg, ${colours.map((c) => `rgb(${c.join(" ")})`).join(", ")})`;
  draw();
})();
