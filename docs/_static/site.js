// What scrolls sideways can be scrolled by keyboard, and the captions of the navigation have a level.
"use strict";

function reach() {
  for (const box of document.querySelectorAll("pre, .table-wrapper")) {
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    scrolls ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex");
  }
}

for (const caption of document.querySelectorAll('[role="heading"]:not([aria-level])')) {
  caption.setAttribute("aria-level", "2");
}
reach();
window.addEventListener("resize", reach);
