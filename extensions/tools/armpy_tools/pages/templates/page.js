"use strict";
// A text that breaks between the words of a name rather than within them or before a unit.
const breakable = (text) => text.replace(/(?<=\d) (?=(?:[µm]?s|[KMG]iB|[BkMG]|%)(?!\w))/g, "\u00a0")
  .split(/(?<=[/;+])|(?<=[_.:])(?=[^\W\d])/)
  .flatMap((part, n) => (n ? [document.createElement("wbr"), part] : [part]));
// What an element's JSON holds, which is parsed when it is first asked for.
const dataOf = (script) => {
  let data = null;
  return () => (data ??= JSON.parse(script.textContent));
};
// Colours, tables that can be sorted, and bar charts that can be folded out.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const kept = {
    // A browser may keep nothing for files.
    get: () => { try { return localStorage.getItem("armpy-theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("armpy-theme", theme); } catch { /* as it was */ } },
  };
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    document.dispatchEvent(new Event("themechange"));
  };
  if (["light", "dark"].includes(kept.get())) root.dataset.theme = kept.get();
  button.hidden = false;
  button.setAttribute("aria-label", "Change between light and dark");
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    kept.set(root.dataset.theme);
    show();
  });
  prefersDark.addEventListener("change", show);
  show();

  const number = (text) => {
    const found = /^[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?/i.exec(text.trim());
    return found ? Number(found[0].replaceAll(",", "")) : NaN;
  };
  const sort = (table, index, heading) => {
    const isDown = heading.getAttribute("aria-sort") === "ascending";
    for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, text: row.cells[index].textContent }));
    const isNumber = heading.classList.contains("n");
    rows.sort((a, b) => {
      if (!isNumber) return a.text.localeCompare(b.text);
      const [x, y] = [number(a.text), number(b.text)];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return x - y;
    });
    if (isDown) rows.reverse();
    body.append(...rows.map(({ row }) => row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, index) => {
      const control = document.createElement("button");
      control.type = "button";
      control.textContent = heading.textContent;
      control.title = "Sort by this";
      heading.replaceChildren(control);
      control.addEventListener("click", () => sort(table, index, heading));
    });
  }

  // A line beside the pointer that names what is under it.
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // tables and panels have the same
  const point = (text, event) => {
    tip.textContent = text;
    tip.hidden = !text;
    if (!text) return;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 4);
    const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 8 : event.clientY + 18;
    [tip.style.left, tip.style.top] = [`${Math.max(left, 4)}px`, `${top}px`];
  };
  document.addEventListener("armpy-tip", ({ detail }) => point(detail.text, detail.event));

  // The point of a chart that is nearest to the pointer.
  for (const figure of document.querySelectorAll("figure.lines")) {
    const chart = figure.querySelector("svg");
    const ring = chart.querySelector("circle");
    const data = dataOf(figure.querySelector("script"));
    const textOf = ([, , label, value]) => `${data().labels[label]}: ${value} ${data().unit}`.trim();
    const leave = () => {
      ring.setAttribute("visibility", "hidden");
      point("");
    };
    chart.addEventListener("pointermove", (event) => {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      let [best, least] = [null, 40 ** 2];
      for (const line of data().lines) {
        for (const place of line.points) {
          const distance = (place[0] - x) ** 2 + ((place[1] - y) / 4) ** 2;
          if (distance < least) [best, least] = [{ line, place }, distance];
        }
      }
      if (!best) {
        leave();
        return;
      }
      const { line, place } = best;
      const marks = { class: `near c${line.colour}`, cx: place[0], cy: place[1], visibility: "visible" };
      for (const [name, value] of Object.entries(marks)) ring.setAttribute(name, value);
      point(data().lines.length > 1 ? `${line.name}, ${textOf(place)}` : textOf(place), event);
    });
    chart.addEventListener("pointerleave", leave);

    // The same as a table, once it is asked for.
    const tabled = () => {
      const table = document.createElement("table");
      table.createCaption().textContent = figure.querySelector("figcaption").textContent;
      const heads = table.createTHead().insertRow();
      for (const text of ["line", "point"]) {
        const heading = heads.appendChild(document.createElement("th"));
        heading.scope = "col";
        heading.textContent = text;
      }
      const body = table.createTBody();
      for (const { name, points } of data().lines) {
        for (const place of points) {
          const row = body.insertRow();
          row.insertCell().textContent = name;
          row.insertCell().textContent = textOf(place);
        }
      }
      return table;
    };
    const details = figure.querySelector("details.data");
    details.addEventListener("toggle", () => details.append(tabled()), { once: true });
  }

  // Bars inside others, and those after the first ones, are folded out.
  for (const source of document.querySelectorAll(".bars + script")) {
    const data = dataOf(source);
    const numMore = Number(source.dataset.more);
    const body = source.previousElementSibling.tBodies[0];
    const pattern = body.rows[0].cloneNode(true);
    delete pattern.dataset.inside;
    pattern.querySelector(".interval")?.remove();
    const rowOf = ([name, text, group, at, ends]) => {
      const row = pattern.cloneNode(true);
      const [heading, value] = row.cells;
      heading.replaceChildren(...breakable(name));
      value.replaceChildren(...breakable(text));
      if (row.cells.length > 3) row.cells[2].textContent = data().groups[group] ?? "";
      const drawn = row.cells[row.cells.length - 1];
      drawn.className = `bar c${Math.max(group, 0) % 10}`;
      drawn.querySelector("rect").setAttribute("width", at);
      if (ends?.length) {
        const picture = drawn.firstElementChild;
        const interval = picture.appendChild(document.createElementNS(picture.namespaceURI, "path"));
        interval.setAttribute("class", "interval");
        interval.setAttribute("d", `M${ends[0]} 5H${ends[1]}`);
      }
      return row;
    };
    const foldInside = (row, insideOf) => {
      const heading = row.querySelector("th");
      const control = document.createElement("button");
      control.type = "button";
      control.append(...heading.childNodes);
      control.setAttribute("aria-expanded", "false");
      heading.append(control);
      let inner = null;
      control.addEventListener("click", () => {
        if (!inner) {
          inner = insideOf().map(rowOf);
          for (const part of inner) part.className = "inner";
          row.after(...inner);
        }
        const isOpen = control.getAttribute("aria-expanded") === "true";
        control.setAttribute("aria-expanded", String(!isOpen));
        for (const part of inner) part.hidden = isOpen;
      });
    };
    for (const row of body.querySelectorAll("tr[data-inside]")) {
      foldInside(row, () => data().inside[Number(row.dataset.inside)]);
    }
    if (!numMore) continue;
    const control = document.createElement("button");
    control.type = "button";
    let others = null;
    const fold = (isFolded) => {
      if (!isFolded && !others) {
        others = data().more.map((bar) => {
          const row = rowOf(bar);
          if (!bar[5]) return row;
          row.dataset.inside = "";
          foldInside(row, () => bar[5]);
          return row;
        });
        body.append(...others);
      }
      for (const row of others ?? []) {
        if (isFolded) row.querySelector("button[aria-expanded='true']")?.click();
        row.hidden = isFolded;
      }
      control.textContent = isFolded ? `Show ${numMore} more` : "Show fewer";
      control.setAttribute("aria-expanded", String(!isFolded));
    };
    control.addEventListener("click", () => fold(control.getAttribute("aria-expanded") === "true"));
    source.closest(".scroll").after(control);
    fold(true);
    addEventListener("beforeprint", () => fold(false));
  }

  // The lines of a matrix's cell, in a row of their own below it.
  for (const matrix of document.querySelectorAll(".matrix")) {
    const texts = JSON.parse(matrix.querySelector("script").textContent);
    const buttons = [...matrix.querySelectorAll("td button")];
    const opened = document.createElement("tr");
    opened.className = "lines";
    const show = (button, lines) => {
      const cell = document.createElement("td");
      cell.colSpan = button.closest("tr").cells.length;
      const panel = cell.appendChild(document.createElement("div"));
      panel.appendChild(document.createElement("p")).textContent = button.title;
      const list = panel.appendChild(document.createElement("dl"));
      for (const [subject, text] of lines) {
        list.appendChild(document.createElement("dt")).textContent = subject;
        if (text) list.appendChild(document.createElement("dd")).textContent = text;
      }
      opened.replaceChildren(cell);
      button.closest("tr").after(opened);
    };
    buttons.forEach((button, n) => {
      button.setAttribute("aria-expanded", "false");
      button.addEventListener("click", () => {
        const isOpen = button.getAttribute("aria-expanded") === "true";
        for (const other of buttons) other.setAttribute("aria-expanded", "false");
        opened.remove();
        if (isOpen) return;
        button.setAttribute("aria-expanded", "true");
        show(button, texts[n]);
      });
    });
  }
})();
