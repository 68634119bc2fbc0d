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

  // What a chart shows is read out of it when its table is asked for.
  const tabled = (figure) => {
    const table = document.createElement("table");
    table.createCaption().textContent = figure.querySelector("figcaption").textContent;
    const heads = table.createTHead().insertRow();
    for (const text of ["line", "point"]) {
      const heading = heads.appendChild(document.createElement("th"));
      heading.scope = "col";
      heading.textContent = text;
    }
    const body = table.createTBody();
    for (const point of figure.querySelectorAll("circle")) {
      const row = body.insertRow();
      row.insertCell().textContent = point.parentElement.dataset.line;
      row.insertCell().textContent = point.textContent;
    }
    return table;
  };
  for (const details of document.querySelectorAll("details.data")) {
    details.addEventListener("toggle", () => details.append(tabled(details.closest("figure"))), { once: true });
  }

  for (const table of document.querySelectorAll("table[data-shown]")) {
    const rows = [...table.tBodies[0].rows].slice(Number(table.dataset.shown));
    const control = document.createElement("button");
    control.type = "button";
    const fold = (isFolded) => {
      for (const row of rows) row.hidden = isFolded;
      control.textContent = isFolded ? `Show ${rows.length} more` : "Show fewer";
      control.setAttribute("aria-expanded", String(!isFolded));
    };
    control.addEventListener("click", () => fold(control.getAttribute("aria-expanded") === "true"));
    table.closest(".scroll").after(control);
    fold(true);
    addEventListener("beforeprint", () => fold(false));
  }
})();
