"use strict";
(() => {
  const { unit, paths: packed, volumes } = JSON.parse(document.getElementById("senesce-maps").textContent);
  const { size, range, sideFor, cellsAt, mix, theme, places, fade } = senesceMap;
  const frames = [...new Set(volumes.flatMap((volume) => volume.frames.map((frame) => frame.pulls)))].sort((a, b) => a - b);
  const slider = document.getElementById("frame");
  const label = document.getElementById("frame-label");
  const play = document.getElementById("play");
  const tip = document.getElementById("tip");
  const METADATA = 255;
  // Paths in order: how many letters each shares with the one before, and the rest.
  const paths = [""];
  for (let at = 0; at < packed.length; at += 2) paths.push((at ? paths.at(-1).slice(0, packed[at]) : "") + packed[at + 1]);
  // Five bytes for each cell that has anything: its distance from the one before, the share of files (1 to 254, or 255 for
  // metadata alone), the place in the tree.
  const unpack = (frame) => {
    const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const bytes = bytesOf(frame.cells), owners = bytesOf(frame.owners), cells = new Map();
    let cell = -1, owner = 0;
    for (let from = 0; from + 5 <= bytes.length; from += 5) {
      const far = (bytes[from] << 8) | bytes[from + 1], kind = bytes[from + 2];
      if (!far) break;
      cell += far;
      const number = kind === METADATA ? 0 : (owners[owner] << 8) | owners[owner + 1];
      if (kind !== METADATA) owner += 2;
      cells.set(cell, { kind, place: ((bytes[from + 3] << 8) | bytes[from + 4]) / 65535, number });
    }
    return { ...frame, cells };
  };
  // The same in larger cells. A cell shares its bytes among those that it overlaps. Each has the file of which it has most bytes.
  const coarsen = (frame, cellBytes) => {
    if (frame.cell_bytes === cellBytes) return frame;
    const ratio = frame.cell_bytes / cellBytes, cells = new Map(), ROUNDING = 1e-6;
    for (const [at, { kind, place, number }] of frame.cells) {
      const from = at * ratio, end = from + ratio;
      for (let to = Math.floor(from + ROUNDING); to < end - ROUNDING; to++) {
        const share = kind === METADATA ? 0 : ((kind - 1) / 253) * (Math.min(end, to + 1) - Math.max(from, to));
        const cell = cells.get(to) ?? { share: 0, most: -1 };
        if (share > cell.most) Object.assign(cell, { most: share, place, number });
        cell.share += share;
        cells.set(to, cell);
      }
    }
    for (const cell of cells.values()) cell.kind = cell.share > 0 ? 1 + Math.round(Math.max(0.004, Math.min(1, cell.share)) * 253) : METADATA;
    return { ...frame, cells, cell_bytes: cellBytes };
  };
  const kindOf = (frame, cell) => frame.cells.get(cell)?.kind ?? 0;
  const ends = (frame, cell) => cell * frame.cell_bytes >= frame.end_bytes && !kindOf(frame, cell);
  // Cells with files at any checkpoint, with what is between near ones; wider gaps are left out.
  const GAP = 8;
  const usedCells = (frames, count) => {
    const near = new Uint8Array(count);
    for (const frame of frames) for (const [cell, { kind }] of frame.cells) {
      if (kind !== METADATA) near.fill(1, Math.max(0, cell - GAP / 2), cell + GAP / 2 + 1);
    }
    return [...near.keys()].filter((cell) => near[cell]);
  };
  // The volumes of an arm are in one row: their cells have the same bytes, and their squares the same sides.
  const rows = new Map();
  for (const volume of volumes) {
    const frames = volume.frames.map(unpack);
    rows.set(volume.arm, [...(rows.get(volume.arm) ?? []), { volume, frames }]);
  }
  const laidOut = new Map();
  for (const row of rows.values()) {
    const cellBytes = Math.max(...row.flatMap(({ frames }) => frames.map((frame) => frame.cell_bytes)));
    for (const entry of row) {
      entry.frames = entry.frames.map((frame) => coarsen(frame, cellBytes));
      entry.count = Math.ceil(Math.max(...entry.frames.map((frame) => Math.max(frame.end_bytes / cellBytes, ...[...frame.cells.keys()].map((cell) => cell + 1)))));
      entry.used = usedCells(entry.frames, entry.count);
    }
    const [whole, used] = [sideFor(Math.max(...row.map((entry) => entry.count))), sideFor(Math.max(...row.map((entry) => entry.used.length)))];
    for (const { volume, frames, count, used: cells } of row) {
      const parts = {
        all: { side: whole, at: cellsAt(whole).map((index) => (index < count ? index : -1)), isWhole: true },
        used: { side: used, at: cellsAt(used).map((index) => cells[index] ?? -1), isWhole: cells.length === count },
      };
      laidOut.set(volume, { frames, parts });
    }
  }
  // A path may break after each of its directories.
  const line = (className, text) => {
    const made = document.createElement(className ? "div" : "b");
    made.className = className ? "path" : "";
    made.append(...text.split(/(?<=\/)/).flatMap((part) => [part, document.createElement("wbr")]));
    return made;
  };
  const describe = (frame, cell) => {
    const from = cell * frame.cell_bytes, kind = kindOf(frame, cell);
    const to = Math.min(from + frame.cell_bytes, Math.max(frame.end_bytes, from + 1));
    if (cell < 0) return ["no part of the volume", "gaps between files are left out"];
    if (ends(frame, cell)) return ["beyond the volume's end"];
    const lines = [`${range(from, to)} of ${size(frame.end_bytes)}`];
    if (kind === METADATA) return [...lines, "metadata, no file"];
    if (!kind) return [...lines, frame.knows_free ? "free" : "free or metadata"];
    const share = Math.max(1, Math.round((kind - 1) / 253 * 100));
    const { place, number: owner } = frame.cells.get(cell);
    const number = Math.round(place * (frame.entries - 1)) + 1;
    const path = owner ? paths[owner] || "(the root)" : null;
    return [...lines, ...(path ? [path] : []), `most of it: entry ${number.toLocaleString("en")} of ${frame.entries.toLocaleString("en")}, in tree order`, `${share}% files`];
  };
  // Each drawing of the last checkpoint gets a canvas in its place, which shows any.
  const panels = [...document.querySelectorAll("#maps .panels > div")];
  const shown = panels.map((panel, number) => {
    const volume = volumes.find((volume) => panel.querySelector("svg").getAttribute("aria-label") === `Map, ${volume.name}`) ?? volumes[number];
    const title = document.createElement("p");
    title.className = "map-title";
    title.textContent = volume.name;
    const name = title.textContent;
    const part = document.createElement("span");
    title.append(part);
    const canvas = document.createElement("canvas");
    canvas.width = 512;
    canvas.height = 512;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    panel.replaceChildren(title, canvas);
    const { frames: framesOf, parts } = laidOut.get(volume);
    const all = new Map(framesOf.map((frame) => [frame.pulls, frame]));
    // After the last checkpoint of its plan, a volume stays as it was then.
    const pullsAt = () => Math.min(frames[Number(slider.value)], volume.last ?? Infinity);
    const map = { canvas, pullsAt, frames: all, name, parts, part: parts.used, cellBytes: framesOf[0].cell_bytes };
    const over = (context, scale, view) => {
      const isPart = view.width < map.part.side;
      const pulls = pullsAt(), isEarlier = pulls < frames[Number(slider.value)];
      part.textContent = [isEarlier ? `after ${pulls.toLocaleString("en")} ${unit}` : "", `${size(map.cellBytes)} a cell`, map.part.isWhole ? "" : "without wide gaps", isPart ? "part" : ""].filter((text) => text).join(", ");
    };
    const pick = (point, event) => {
      const frame = all.get(pullsAt());
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
    map.view = senesceMap.view(canvas, parts.used.side, { over, pick });
    return map;
  });
  const draw = () => {
    const shownPulls = frames[Number(slider.value)];
    const blank = theme("--faint"), metadata = theme("--axis"), colours = places();
    const css = (colour) => `rgb(${colour.join(" ")})`;
    document.querySelector(".film .scale i").style.background = `linear-gradient(90deg, ${colours.map(css).join(", ")})`;
    const shade = (share) => css(fade(mix(colours, 0.4), share, blank));
    partly.style.background = `linear-gradient(90deg, ${shade(0)}, ${shade(1)})`;
    label.textContent = `${shownPulls.toLocaleString("en")} ${unit}`;
    for (const { canvas, pullsAt, frames, name, view, part } of shown) {
      const pulls = pullsAt(), frame = frames.get(pulls);
      view.paint((point) => {
        const cell = part.at[point];
        if (!frame || cell < 0) return null;
        const kind = kindOf(frame, cell);
        if (kind === METADATA) return metadata;
        if (kind) return fade(mix(colours, frame.cells.get(cell).place), (kind - 1) / 253, blank);
        return ends(frame, cell) ? null : blank;
      });
      canvas.setAttribute("aria-label", `Map, ${name}, after ${pulls} ${unit}. Arrow keys move between cells, plus and minus zoom.`);
    }
  };
  const kinds = document.getElementById("map-kinds"), partly = document.createElement("i"), partlyEntry = document.createElement("span");
  partlyEntry.append(partly, "partly filled by files");
  const all = volumes.flatMap((volume) => volume.frames);
  const knowsFree = all.some((frame) => frame.knows_free);
    const names = [["--faint", knowsFree ? "free" : "free or metadata"], ...(knowsFree ? [["--axis", "metadata"]] : []), ["", "no part of the volume"]];
  kinds.append(partlyEntry, ...names.map(([colour, text]) => {
    const entry = document.createElement("span"), patch = document.createElement("i");
    if (colour) patch.style.background = `var(${colour})`;
    else patch.className = "hatch";
    entry.append(patch, text);
    return entry;
  }));
  const parts = [...document.querySelectorAll("#maps button.part")];
  const showPart = (name) => {
    for (const button of parts) button.setAttribute("aria-pressed", button.dataset.part === name);
    for (const map of shown) {
      map.part = map.parts[name];
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
  showPart("used");
  // The cells of the checkpoint shown, as CSV. A text that a spreadsheet would run as a formula gets an apostrophe.
  const field = (text) => `"${String(text).replace(/^[=+\-@\t\r\n]/, "'$&").replaceAll('"', '""')}"`;
  document.getElementById("maps").addEventListener("wantcsv", (event) => {
    const rows = ["volume,checkpoint,first_byte,bytes,holds,share_of_files,place_in_tree,path"];
    for (const { frames: all, name, pullsAt } of shown) {
      const pulls = pullsAt(), frame = all.get(pulls);
      for (const [cell, { kind, place, number }] of frame ? frame.cells : []) {
        const files = kind === METADATA ? ["metadata", 0, "", ""] : ["files", ((kind - 1) / 253).toFixed(3), place.toFixed(5), field(paths[number] ?? "")];
        rows.push([field(name), pulls, cell * frame.cell_bytes, frame.cell_bytes, ...files].join(","));
      }
    }
    event.target.querySelector("template.csv").content.textContent = `${rows.join("\n")}\n`;
  });
})();
