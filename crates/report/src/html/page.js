"use strict";
(() => {
  // Values of a picture's marks: under the pointer, or by arrow keys when the picture has the focus.
  for (const chart of document.querySelectorAll("[data-chart]")) {
    const readout = chart.closest(".plot").parentElement.querySelector("output.readout");
    const marks = [...chart.querySelectorAll("[data-v]")];
    let at = -1;
    const show = (i) => {
      if (at >= 0) marks[at].classList.remove("on");
      at = i;
      marks[at].classList.add("on");
      readout.textContent = marks[at].dataset.v;
    };
    chart.addEventListener("pointermove", (event) => {
      const mark = event.target.closest("[data-v]");
      if (mark) show(marks.indexOf(mark));
    });
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined || marks.length === 0) return;
      event.preventDefault();
      show(Math.min(marks.length - 1, Math.max(0, at + step)));
    });
  }

  // Tables sort by a click or key on a column's head; the rows of others and total stay below.
  for (const table of document.querySelectorAll("table[data-sort]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((h) => h.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => {
          const cell = row.cells[column];
          return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
        };
        const order = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => (down ? order(key(b), key(a)) : order(key(a), key(b))));
        table.tBodies[0].append(...rows);
      });
    });
  }

  // Call stacks: arrow keys move among the functions, Enter or a click widens one, again or Escape shows all.
  for (const icicle of document.querySelectorAll("[data-icicle]")) {
    const readout = icicle.closest(".flame").querySelector("output.readout");
    const frames = [...icicle.querySelectorAll("button")];
    let wide = null;
    const widen = (frame) => {
      wide = frame === wide ? null : frame;
      const [x, w] = wide ? [Number(wide.dataset.x), Number(wide.dataset.w)] : [0, 100];
      for (const f of frames) {
        const from = Math.max(0, ((Number(f.dataset.x) - x) * 100) / w);
        const to = Math.min(100, ((Number(f.dataset.x) + Number(f.dataset.w) - x) * 100) / w);
        f.hidden = to - from < 0.05;
        f.style.left = from + "%";
        f.style.width = Math.max(0, to - from) + "%";
      }
    };
    const read = (event) => {
      const frame = event.target.closest("button");
      if (frame) readout.textContent = frame.dataset.v;
    };
    icicle.addEventListener("pointermove", read);
    icicle.addEventListener("focusin", read);
    icicle.addEventListener("click", (event) => {
      const frame = event.target.closest("button");
      if (frame) widen(frame);
    });
    icicle.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && wide) return widen(wide);
      const here = frames.indexOf(document.activeElement);
      const top = (f) => parseInt(f.style.top, 10);
      const inside = (a, b) => Number(a.dataset.x) >= Number(b.dataset.x) - 1e-4 && Number(a.dataset.x) < Number(b.dataset.x) + Number(b.dataset.w);
      const shown = (f) => !f.hidden;
      const find = {
        ArrowRight: () => frames.slice(here + 1).find((f) => shown(f) && top(f) === top(frames[here])),
        ArrowLeft: () => frames.slice(0, here).reverse().find((f) => shown(f) && top(f) === top(frames[here])),
        ArrowDown: () => frames.find((f) => shown(f) && top(f) > top(frames[here]) && inside(f, frames[here])),
        ArrowUp: () => frames.slice(0, here).reverse().find((f) => shown(f) && top(f) < top(frames[here]) && inside(frames[here], f)),
      }[event.key];
      if (!find || here < 0) return;
      event.preventDefault();
      const next = find();
      if (!next) return;
      frames[here].tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }
})();
