"use strict";
(() => {
  const { unit, side, colours, paths: packed, volumes } = JSON.parse(document.getElementById("senesce-maps").textContent);
  const { size, range, cellsAt, mix, theme, fade } = senesceMap;
  const frames = [...new Set(volumes.flatMap((volume) => volume.frames.map((frame) => frame.pulls)))].sort((a, b) => a - b);
  const slider = document.getElementById("frame");
  const label = document.getElementById("frame-label");
  const play = document.getElementById("play");
  const tip = document.getElementById("tip");
  const at = cellsAt(side);
  const METADATA = 255;
  // Paths in order: how many letters each shares with the one before, and the rest.
  const paths = [""];
  for (let at = 0; at < packed.length; at += 2) paths.push((at ? paths.at(-1).slice(0, packed[at]) : "") + packed[at + 1]);
  // Three bytes a cell, along the volume: 0 for nothing of files, 1 to 254 for the share of files, 255 for metadata alone; then
  // the place in the tree. Cells behind the last one have nothing.
  const unpack = (frame) => {
    const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const bytes = bytesOf(frame.cells), owners = bytesOf(frame.owners);
    // Two bytes for each cell of files: the number of a path, or 0.
    const ownerOf = new Map();
    for (let cell = 0; cell < bytes.length / 3; cell += 1) {
      if (!bytes[cell * 3] || bytes[cell * 3] === METADATA) continue;
      const at = ownerOf.size * 2;
      ownerOf.set(cell, (owners[at] << 8) | owners[at + 1]);
    }
    const path = (cell) => { const number = ownerOf.get(cell); return number ? paths[number] || "(the root)" : null; };
    return { ...frame, path, kind: (cell) => bytes[cell * 3] ?? 0, place: (cell) => ((bytes[cell * 3 + 1] << 8) | bytes[cell * 3 + 2]) / 65535 };
  };
  const ends = (frame, cell) => cell * frame.cell_bytes >= frame.end_bytes && !frame.kind(cell);
  // Cells with files at any checkpoint, with what lies between near ones; wider gaps are left out. As the points of a square.
  const GAP = 8;
  const usedPart = (frames) => {
    const near = new Uint8Array(side * side);
    for (const frame of frames) for (let cell = 0; cell < side * side; cell += 1) {
      if (frame.kind(cell) && frame.kind(cell) !== METADATA) near.fill(1, Math.max(0, cell - GAP / 2), cell + GAP / 2 + 1);
    }
    const cells = [...near.keys()].filter((cell) => near[cell]);
    let least = 1;
    while (least * least < cells.length) least *= 2;
    if (least >= side || !cells.length) return { side, at, isWhole: true };
    return { side: least, at: cellsAt(least).map((index) => cells[index] ?? -1), isWhole: false };
  };
  const line = (className, text) => {
    const made = document.createElement(className ? "div" : "b");
    made.textContent = text;
    return made;
  };
  const describe = (frame, cell) => {
    const from = cell * frame.cell_bytes, kind = frame.kind(cell);
    const to = Math.min(from + frame.cell_bytes, Math.max(frame.end_bytes, from + 1));
    if (cell < 0) return ["no part of the volume", "gaps between files are left out"];
    if (ends(frame, cell)) return ["beyond the volume's end"];
    const lines = [`${range(from, to)} of ${size(frame.end_bytes)}`];
    if (kind === METADATA) return [...lines, "metadata, no file"];
    if (!kind) return [...lines, frame.knows_free ? "free" : "free or metadata"];
    const share = Math.max(1, Math.round((kind - 1) / 253 * 100));
    const number = Math.round(frame.place(cell) * (frame.entries - 1)) + 1;
    const path = frame.path(cell);
    return [...lines, ...(path ? [path] : []), `most of it: entry ${number.toLocaleString("en")} of ${frame.entries.toLocaleString("en")}, in tree order`, `${share}% files`];
  };
  // Each drawing of the last checkpoint gets a canvas in its place, which shows any.
  const panels = [...document.querySelectorAll("#maps .panels > div")];
  const shown = panels.map((panel, number) => {
    const volume = volumes.find((volume) => panel.querySelector("svg").getAttribute("aria-label") === `Map, ${volume.arm}, ${volume.role}`) ?? volumes[number];
    const title = document.createElement("p");
    title.className = "map-title";
    title.textContent = `${volume.arm}, ${volume.role}`;
    const name = title.textContent;
    const part = document.createElement("span");
    title.append(part);
    const canvas = document.createElement("canvas");
    canvas.width = 512;
    canvas.height = 512;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    panel.replaceChildren(title, canvas);
    const all = new Map(volume.frames.map((frame) => [frame.pulls, unpack(frame)]));
    const used = usedPart([...all.values()]);
    const map = { canvas, frames: all, name, used, part: used };
    const over = (context, scale, view) => {
      const isPart = view.width < map.part.side;
      part.textContent = [map.part.isWhole ? "" : "without wide gaps", isPart ? "part" : ""].filter((text) => text).join(", ");
    };
    const pick = (point, event) => {
      const frame = all.get(frames[Number(slider.value)]);
      tip.hidden = !point || !frame;
      if (tip.hidden) return;
      const [heading, ...lines] = describe(frame, map.part.at[point[1] * map.part.side + point[0]]);
      tip.replaceChildren(line("", heading), ...lines.map((text) => line("name", text)));
      canvas.setAttribute("aria-description", [heading, ...lines].join(", "));
      const box = canvas.getBoundingClientRect();
      const [x, y] = event ? [event.clientX, event.clientY] : [box.left + box.width / 2, box.top];
      const mine = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - mine.width - 8))}px`;
      tip.style.top = `${Math.max(8, Math.min(y + 14, innerHeight - mine.height - 8))}px`;
    };
    map.view = senesceMap.view(canvas, used.side, { over, pick });
    return map;
  });
  const draw = () => {
    const pulls = frames[Number(slider.value)];
    const blank = theme("--faint"), metadata = theme("--axis"), paper = theme("--paper");
    label.textContent = `${pulls.toLocaleString("en")} ${unit}`;
    for (const { canvas, frames, name, view, part } of shown) {
      const frame = frames.get(pulls);
      view.paint((point) => {
        const cell = part.at[point];
        if (!frame || cell < 0) return paper;
        const kind = frame.kind(cell);
        if (kind === METADATA) return metadata;
        if (kind) return fade(mix(colours, frame.place(cell)), (kind - 1) / 253, blank);
        return ends(frame, cell) ? paper : blank;
      });
      canvas.setAttribute("aria-label", `Map, ${name}, after ${pulls} ${unit}. Arrow keys move between cells, plus and minus zoom.`);
    }
  };
  const kinds = document.getElementById("map-kinds");
  const all = volumes.flatMap((volume) => volume.frames);
  const knowsFree = all.some((frame) => frame.knows_free);
  const isShort = all.some((frame) => side * side * frame.cell_bytes > frame.end_bytes);
  const names = [["--faint", knowsFree ? "free" : "free or metadata"], ...(knowsFree ? [["--axis", "metadata"]] : []), ...(isShort ? [["--paper", "beyond the volume's end"]] : [])];
  kinds.append(...names.map(([colour, text]) => {
    const entry = document.createElement("span"), patch = document.createElement("i");
    patch.style.background = `var(${colour})`;
    entry.append(patch, text);
    return entry;
  }));
  const parts = [...document.querySelectorAll("#maps button.part")];
  const showPart = (name) => {
    for (const button of parts) button.setAttribute("aria-pressed", button.dataset.part === name);
    for (const map of shown) {
      map.part = name === "used" ? map.used : { side, at, isWhole: true };
      map.view.resize(map.part.side);
    }
    draw();
  };
  for (const button of parts) button.addEventListener("click", () => showPart(button.dataset.part));
  for (const [id, factor] of [["map-in", 0.5], ["map-out", 2]]) {
    document.getElementById(id).addEventListener("click", () => { for (const { view } of shown) view.zoom(factor); });
  }
  document.getElementById("theme").addEventListener("click", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
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
  showPart("used");
})();
