"use strict";
(() => {
  const data = JSON.parse(document.getElementById("senesce-data").textContent);
  const { side, cell_bytes: cellBytes, used, free, extents, owner, modified } = data.map;
  const knowsFree = data.free_space !== null;
  const files = new Map(data.map_files.map((file) => [file.number, file]));
  const canvas = document.getElementById("volume-map");
  const context = canvas.getContext("2d");
  const root = document.documentElement;
  const size = (bytes) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (bytes >= 1024 && unit + 1 < units.length) { bytes /= 1024; unit += 1; }
    return `${bytes >= 100 || unit === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
  };

  // The Hilbert curve: the place of every cell, and the cell at every place.
  const place = (index) => {
    let x = 0, y = 0, rest = index;
    for (let step = 1; step < side; step *= 2) {
      const right = 1 & (rest / 2), up = 1 & (rest ^ right);
      if (up === 0) {
        if (right === 1) { x = step - 1 - x; y = step - 1 - y; }
        [x, y] = [y, x];
      }
      x += step * right;
      y += step * up;
      rest = Math.floor(rest / 4);
    }
    return [x, y];
  };
  const at = new Int32Array(side * side);
  for (let index = 0; index < side * side; index += 1) {
    const [x, y] = place(index);
    at[y * side + x] = index;
  }

  // Colours: even steps of lightness and hue, so that neighbours in the tree look alike and strangers do not.
  const mix = (stops, share) => {
    const position = Math.max(0, Math.min(1, share)) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(position));
    const part = position - low;
    return stops[low].map((from, channel) => Math.round(from + (stops[low + 1][channel] - from) * part));
  };
  const hue = (degrees, saturation, lightness) => {
    const chroma = saturation * Math.min(lightness, 1 - lightness);
    const channel = (n) => {
      const k = (n + degrees / 30) % 12;
      return Math.round(255 * (lightness - chroma * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
    };
    return [channel(0), channel(8), channel(4)];
  };
  const TREE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const HEAT = [[222, 232, 240], [250, 190, 110], [214, 80, 60], [110, 16, 60]];
  const most = owner.reduce((largest, number) => Math.max(largest, number ?? 0), 1);
  const times = modified.filter((time, index) => used[index] > 0).sort((a, b) => a - b);
  const rank = (time) => {
    let low = 0, high = times.length;
    while (low < high) { const middle = (low + high) >> 1; if (times[middle] < time) low = middle + 1; else high = middle; }
    return times.length > 1 ? low / (times.length - 1) : 0.5;
  };
  const date = (seconds) => (Math.abs(seconds) < 8e12 ? new Date(seconds * 1000).toISOString().slice(0, 10) : "–");
  const modes = {
    tree: {
      legend: "Colour: the place in the tree of the file that holds most of the cell, from the first file to the last.",
      colour: (index) => mix(TREE, (owner[index] ?? 0) / most),
      scale: (share) => mix(TREE, share),
    },
    directory: {
      legend: "Colour: the directory of the file that holds most of the cell. One colour may stand for several.",
      colour: (index) => {
        const number = files.get(owner[index])?.directory ?? 0;
        return hue((number * 137.508) % 360, 0.55, 0.42 + 0.2 * ((number * 0.618) % 1));
      },
      scale: (share) => hue(share * 360, 0.55, 0.52),
    },
    age: {
      legend: times.length ? `Colour: when the content was modified, from ${date(times[0])} (dark) to ${date(times[times.length - 1])} (light).` : "",
      colour: (index) => mix(TREE, rank(modified[index])),
      scale: (share) => mix(TREE, share),
    },
    extents: {
      legend: "Colour: how many extents lie in the cell, from 1 to 16 and more.",
      colour: (index) => mix(HEAT, Math.log2(Math.max(1, extents[index])) / 4),
      scale: (share) => mix(HEAT, share),
    },
  };
  let mode = "tree";
  const picture = document.createElement("canvas");
  picture.width = side;
  picture.height = side;
  const rgb = (name) => {
    const text = getComputedStyle(root).getPropertyValue(name).trim();
    return [1, 3, 5].map((from) => parseInt(text.slice(from, from + 2), 16));
  };
  const paint = () => {
    const blank = rgb("--faint"), other = rgb("--axis"), paper = rgb("--paper");
    const image = new ImageData(side, side);
    for (let point = 0; point < side * side; point += 1) {
      const index = at[point];
      const isBehindEnd = index * cellBytes >= data.volume_bytes;
      let colour = isBehindEnd ? paper : blank;
      if (used[index] > 0) {
        // A cell that is partly free is partly the colour of free space.
        const part = 0.35 + 0.65 * Math.min(1, used[index] / cellBytes);
        colour = modes[mode].colour(index).map((channel, at) => Math.round(channel * part + blank[at] * (1 - part)));
      } else if (!isBehindEnd && knowsFree && free[index] < cellBytes / 2) {
        colour = other;
      }
      image.data.set([...colour, 255], point * 4);
    }
    picture.getContext("2d").putImageData(image, 0, 0);
    document.getElementById("map-legend").textContent = `${modes[mode].legend} Background: free${knowsFree ? "; grey: metadata" : " or metadata"}.`;
    document.getElementById("map-scale").replaceChildren(...Array.from({ length: 40 }, (_, step) => {
      const part = document.createElement("span");
      part.style.background = `rgb(${modes[mode].scale(step / 39).join(" ")})`;
      return part;
    }));
    draw();
  };

  // Zoom and position: what part of the square is shown.
  let view = { x: 0, y: 0, width: side };
  let chosen = null;
  const clampView = () => {
    view.width = Math.max(8, Math.min(side, view.width));
    view.x = Math.max(0, Math.min(side - view.width, view.x));
    view.y = Math.max(0, Math.min(side - view.width, view.y));
  };
  const draw = () => {
    const scale = canvas.width / view.width;
    context.imageSmoothingEnabled = false;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, view.x, view.y, view.width, view.width, 0, 0, canvas.width, canvas.height);
    if (chosen === null) return;
    context.fillStyle = getComputedStyle(root).getPropertyValue("--full");
    const mine = owner[chosen];
    for (let point = 0; point < side * side; point += 1) {
      if (at[point] !== chosen && (mine === null || owner[at[point]] !== mine)) continue;
      const x = ((point % side) - view.x) * scale, y = (Math.floor(point / side) - view.y) * scale;
      context.globalAlpha = at[point] === chosen ? 1 : 0.85;
      context.fillRect(x, y, Math.max(scale, 3), Math.max(scale, 3));
    }
    context.globalAlpha = 1;
  };
  const describe = (index) => {
    const from = index * cellBytes;
    const lines = [`${size(from)} to ${size(from + cellBytes)} of the volume`];
    const file = files.get(owner[index]);
    if (file) {
      const directory = data.map_directories[file.directory];
      lines.push(`${directory ? directory + "/" : ""}${file.name || "(directory)"}`, `${size(file.size_bytes)} in ${file.extents} extent${file.extents === 1 ? "" : "s"}, modified ${date(modified[index])}`);
    }
    lines.push(`${size(used[index])} of files in ${extents[index]} extent${extents[index] === 1 ? "" : "s"}${knowsFree ? `, ${size(free[index])} free` : ""}`);
    return lines.join("\n");
  };
  const choose = (x, y) => {
    if (x < 0 || y < 0 || x >= side || y >= side) return;
    chosen = at[y * side + x];
    document.getElementById("map-cell").textContent = describe(chosen);
    draw();
  };
  const pointOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return [view.x + ((event.clientX - box.left) / box.width) * view.width, view.y + ((event.clientY - box.top) / box.height) * view.width];
  };
  const zoom = (factor, x, y) => {
    const before = view.width;
    view.width *= factor;
    clampView();
    const share = view.width / before;
    view.x = x - (x - view.x) * share;
    view.y = y - (y - view.y) * share;
    clampView();
    draw();
  };
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, from: { ...view } }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { drag = null; });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && view.width < side) {
      const perPixel = view.width / canvas.getBoundingClientRect().width;
      view.x = drag.from.x - (event.clientX - drag.x) * perPixel;
      view.y = drag.from.y - (event.clientY - drag.y) * perPixel;
      clampView();
      draw();
    } else {
      const [x, y] = pointOf(event);
      choose(Math.floor(x), Math.floor(y));
    }
  });
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8, ...pointOf(event)); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [x, y] = place(chosen ?? 0);
    choose(x + step[0], y + step[1]);
  });
  const middle = () => [view.x + view.width / 2, view.y + view.width / 2];
  document.getElementById("zoom-in").addEventListener("click", () => zoom(0.5, ...middle()));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(2, ...middle()));
  for (const button of document.querySelectorAll("button.mode")) {
    button.addEventListener("click", () => {
      mode = button.dataset.mode;
      for (const other of document.querySelectorAll("button.mode")) other.setAttribute("aria-pressed", other === button);
      paint();
    });
  }
  document.getElementById("theme").addEventListener("click", paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  paint();
})();
