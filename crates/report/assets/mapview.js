"use strict";
// What the maps of volumes share: the Hilbert curve, colours, words, and a picture that can be zoomed and moved.
const senesceMap = (() => {
  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
  const size = (bytes) => {
    let unit = 0;
    while (bytes >= 1024 && unit + 1 < UNITS.length) { bytes /= 1024; unit += 1; }
    return `${Math.abs(bytes) < 1000 ? Number(bytes.toPrecision(3)) : Math.round(bytes)} ${UNITS[unit]}`;
  };
  // Where a cell is, and how long: `8 KiB at 37.2 MiB`.
  const range = (from, to) => `${size(to - from)} at ${size(from)}`;
  // The cell at every place of a square with an even side, along a generalised Hilbert curve (J. Cerveny, 2018): the curve
  // fills squares of any even side, so that no part of the picture stays empty.
  const cellsAt = (side) => {
    const at = new Int32Array(side * side);
    let index = 0;
    const line = (x, y, [dx, dy], length) => { for (let step = 0; step < length; step += 1) at[(y + step * dy) * side + x + step * dx] = index++; };
    const fill = (x, y, ax, ay, bx, by) => {
      const [width, height] = [Math.abs(ax + ay), Math.abs(bx + by)];
      const [dax, day, dbx, dby] = [ax, ay, bx, by].map(Math.sign);
      if (height === 1) return line(x, y, [dax, day], width);
      if (width === 1) return line(x, y, [dbx, dby], height);
      let [ax2, ay2, bx2, by2] = [ax, ay, bx, by].map((length) => Math.floor(length / 2));
      if (2 * width > 3 * height) {
        if (Math.abs(ax2 + ay2) % 2 && width > 2) { ax2 += dax; ay2 += day; }
        fill(x, y, ax2, ay2, bx, by);
        return fill(x + ax2, y + ay2, ax - ax2, ay - ay2, bx, by);
      }
      if (Math.abs(bx2 + by2) % 2 && height > 2) { bx2 += dbx; by2 += dby; }
      fill(x, y, bx2, by2, ax2, ay2);
      fill(x + bx2, y + by2, ax, ay, bx - bx2, by - by2);
      fill(x + ax - dax + bx2 - dbx, y + ay - day + by2 - dby, -bx2, -by2, ax2 - ax, ay2 - ay);
    };
    fill(0, 0, side, 0, 0, side);
    return at;
  };
  const sideFor = (count) => Math.max(4, 2 * Math.ceil(Math.sqrt(count) / 2));
  const mix = (stops, share) => {
    const position = Math.max(0, Math.min(1, share)) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(position));
    const part = position - low;
    return stops[low].map((from, channel) => Math.round(from + (stops[low + 1][channel] - from) * part));
  };
  // The places in the tree. On dark paper the scale starts lighter, on light paper it ends darker, so that no file looks free.
  const PLACES = {
    light: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [82, 180, 86], [222, 184, 8]],
    dark: [[158, 98, 200], [98, 124, 208], [44, 164, 158], [110, 210, 106], [253, 231, 37]],
  };
  const isDark = () => theme("--paper").reduce((sum, channel) => sum + channel, 0) < 384;
  const places = () => (isDark() ? PLACES.dark : PLACES.light);
  const theme = (name) => {
    const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    return [1, 3, 5].map((from) => parseInt(text.slice(from, from + 2), 16));
  };
  // A cell that is partly of files is partly the colour of free space.
  const fade = (colour, share, blank) => {
    const part = 0.35 + 0.65 * Math.min(1, share);
    return colour.map((channel, at) => Math.round(channel * part + blank[at] * (1 - part)));
  };

  // A square of cells on a canvas. A cell without a colour is no part of the volume: the hatch of the page is seen there.
  // `over` draws on top, `pick` gets the place under the pointer, or null when it leaves.
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
      for (let point = 0; point < side * side; point += 1) {
        const filled = colour(point);
        if (filled) image.data.set([...filled, 255], point * 4);
      }
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
  return { size, range, sideFor, cellsAt, mix, theme, places, fade, view };
})();
