// What scrolls sideways can be scrolled by keyboard.
"use strict";

function reach() {
  for (const box of document.querySelectorAll("pre, .table-wrapper")) {
    const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    scrolls ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex");
  }
}

reach();
window.addEventListener("resize", reach);
