"use strict";
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
    const lines = JSON.parse(figure.querySelector("script").textContent);
    const leave = () => {
      ring.setAttribute("visibility", "hidden");
      point("");
    };
    chart.addEventListener("pointermove", (event) => {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      let [best, least] = [null, 40 ** 2];
      for (const line of lines) {
        for (const [px, py, text] of line.points) {
          const distance = (px - x) ** 2 + ((py - y) / 4) ** 2;
          if (distance < least) [best, least] = [{ line, px, py, text }, distance];
        }
      }
      if (!best) {
        leave();
        return;
      }
      const { line, px, py, text } = best;
      const marks = { class: `near c${line.colour}`, cx: px, cy: py, visibility: "visible" };
      for (const [name, value] of Object.entries(marks)) ring.setAttribute(name, value);
      point(lines.length > 1 ? `${line.name}, ${text}` : text, event);
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
      for (const { name, points } of lines) {
        for (const [, , text] of points) {
          const row = body.insertRow();
          row.insertCell().textContent = name;
          row.insertCell().textContent = text;
        }
      }
      return table;
    };
    const details = figure.querySelector("details.data");
    details.addEventListener("toggle", () => details.append(tabled()), { once: true });
  }

  // Bars inside others, and those after the first ones, are folded out.
  for (const source of document.querySelectorAll(".bars + script")) {
    const { inside, more } = JSON.parse(source.textContent);
    const body = source.previousElementSibling.tBodies[0];
    const rowsOf = (markup) => {
      const template = document.createElement("template");
      template.innerHTML = markup;
      return [...template.content.querySelectorAll("tr")];
    };
    const foldInside = (row) => {
      const heading = row.querySelector("th");
      const control = document.createElement("button");
      control.type = "button";
      control.append(...heading.childNodes);
      control.setAttribute("aria-expanded", "false");
      heading.append(control);
      let inner = null;
      control.addEventListener("click", () => {
        if (!inner) row.after(...(inner = rowsOf(inside[Number(row.dataset.inside)])));
        const isOpen = control.getAttribute("aria-expanded") === "true";
        control.setAttribute("aria-expanded", String(!isOpen));
        for (const part of inner) part.hidden = isOpen;
      });
    };
    for (const row of body.querySelectorAll("tr[data-inside]")) foldInside(row);
    if (!more.length) continue;
    const control = document.createElement("button");
    control.type = "button";
    let others = null;
    const fold = (isFolded) => {
      if (!isFolded && !others) {
        others = more.flatMap(rowsOf);
        body.append(...others);
        for (const row of others) if (row.dataset.inside) foldInside(row);
      }
      for (const row of others ?? []) {
        if (isFolded) row.querySelector("button[aria-expanded='true']")?.click();
        row.hidden = isFolded;
      }
      control.textContent = isFolded ? `Show ${more.length} more` : "Show fewer";
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
