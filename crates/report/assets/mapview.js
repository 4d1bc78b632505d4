"use strict";
// What the maps of volumes share: the Hilbert curve, colours, words, and a picture that can be zoomed and moved.
const senesceMap = (() => {
  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
  const size = (bytes) => {
    let unit = 0;
    while (bytes >= 1024 && unit + 1 < UNITS.length) { bytes /= 1024; unit += 1; }
    return `${bytes >= 100 || unit === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${UNITS[unit]}`;
  };
  // Two places in one unit, with so many digits that they differ.
  const range = (from, to) => {
    let unit = 0;
    while (to >= 1024 ** (unit + 1) && unit + 1 < UNITS.length) unit += 1;
    const text = (bytes, digits) => (bytes / 1024 ** unit).toFixed(digits);
    let digits = 0;
    while (digits < 6 && (text(from, digits) === text(to, digits) || Math.abs((to - from) / 1024 ** unit - (text(to, digits) - text(from, digits))) > 0.05 * (to - from) / 1024 ** unit)) digits += 1;
    return `${text(from, digits)} to ${text(to, digits)} ${UNITS[unit]}`;
  };
  // The place of every cell, and the cell at every place.
  const place = (side, index) => {
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
  const cellsAt = (side) => {
    const at = new Int32Array(side * side);
    for (let index = 0; index < side * side; index += 1) {
      const [x, y] = place(side, index);
      at[y * side + x] = index;
    }
    return at;
  };
  const mix = (stops, share) => {
    const position = Math.max(0, Math.min(1, share)) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(position));
    const part = position - low;
    return stops[low].map((from, channel) => Math.round(from + (stops[low + 1][channel] - from) * part));
  };
  const theme = (name) => {
    const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    return [1, 3, 5].map((from) => parseInt(text.slice(from, from + 2), 16));
  };
  // A cell that is partly of files is partly the colour of free space.
  const fade = (colour, share, blank) => {
    const part = 0.35 + 0.65 * Math.min(1, share);
    return colour.map((channel, at) => Math.round(channel * part + blank[at] * (1 - part)));
  };

  // A square of cells on a canvas. `over` draws on top, `pick` gets the place under the pointer, or null when it leaves.
  const view = (canvas, side, { over = () => {}, pick = () => {} }) => {
    const context = canvas.getContext("2d");
    const picture = document.createElement("canvas");
    const shown = { x: 0, y: 0, width: side };
    // So many cells on each side from now on, all of them shown; painted by the next `paint`.
    const resize = (to) => {
      side = to;
      picture.width = picture.height = to;
      Object.assign(shown, { x: 0, y: 0, width: to });
    };
    resize(side);
    let chosen = [0, 0];
    const clamp = () => {
      shown.width = Math.max(4, Math.min(side, shown.width));
      shown.x = Math.max(0, Math.min(side - shown.width, shown.x));
      shown.y = Math.max(0, Math.min(side - shown.width, shown.y));
    };
    const draw = () => {
      context.imageSmoothingEnabled = false;
      context.clearRect(0, 0, canvas.width, canvas.height);
      context.drawImage(picture, shown.x, shown.y, shown.width, shown.width, 0, 0, canvas.width, canvas.height);
      over(context, canvas.width / shown.width, shown);
    };
    const paint = (colour) => {
      const image = new ImageData(side, side);
      for (let point = 0; point < side * side; point += 1) image.data.set([...colour(point), 255], point * 4);
      picture.getContext("2d").putImageData(image, 0, 0);
      draw();
    };
    const show = (x, y, width) => {
      Object.assign(shown, { x, y, width });
      clamp();
      draw();
    };
    const zoom = (factor, x = shown.x + shown.width / 2, y = shown.y + shown.width / 2) => {
      const width = Math.max(4, Math.min(side, shown.width * factor));
      const share = width / shown.width;
      show(x - (x - shown.x) * share, y - (y - shown.y) * share, width);
    };
    const pointOf = (event) => {
      const box = canvas.getBoundingClientRect();
      return [shown.x + ((event.clientX - box.left) / box.width) * shown.width, shown.y + ((event.clientY - box.top) / box.height) * shown.width];
    };
    const choose = (x, y, event) => {
      if (x < 0 || y < 0 || x >= side || y >= side) return;
      chosen = [x, y];
      pick(chosen, event);
    };
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, from: { ...shown } }; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { drag = null; });
    canvas.addEventListener("pointerleave", () => pick(null));
    canvas.addEventListener("pointermove", (event) => {
      if (drag && shown.width < side) {
        const perPixel = shown.width / canvas.getBoundingClientRect().width;
        show(drag.from.x - (event.clientX - drag.x) * perPixel, drag.from.y - (event.clientY - drag.y) * perPixel, shown.width);
      } else {
        const [x, y] = pointOf(event);
        choose(Math.floor(x), Math.floor(y), event);
      }
    });
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : 0.8, ...pointOf(event)); }, { passive: false });
    canvas.addEventListener("blur", () => pick(null));
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "+" || event.key === "-") return zoom(event.key === "+" ? 0.5 : 2);
      const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      choose(chosen[0] + step[0], chosen[1] + step[1]);
    });
    return { paint, draw, zoom, resize };
  };
  return { size, range, place, cellsAt, mix, theme, fade, view };
})();
