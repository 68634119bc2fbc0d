// What scrolls sideways can be scrolled by keyboard, and the two lists beside a page have names.
"use strict";

for (const [part, name] of [[".sidebar-drawer", "All pages"], [".toc-drawer", "This page"]]) {
  document.querySelector(part)?.setAttribute("aria-label", name);
}

function reach() {
  for (const box of document.querySelectorAll("pre, .table-wrapper")) {
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    scrolls ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex");
  }
}

reach();
window.addEventListener("resize", reach);

if (!document.querySelector("h1")) { // the page of the search
  const heading = document.createElement("h1");
  heading.textContent = document.title.split(" - ")[0];
  document.querySelector("article")?.prepend(heading);
}
