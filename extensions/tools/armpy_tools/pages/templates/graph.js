// Graphs: drawn on a canvas, of which only what is seen is drawn, so that thousands of nodes move
// smoothly. What is chosen is told in the page's own elements.
(() => {
  const FONT = "12px system-ui, sans-serif";
  const BOLD = "600 12px system-ui, sans-serif";
  const [LEAST, MOST] = [0.005, 4];
  const TEXT_FROM = 0.45; // scale from which texts can be read
  const MAP = 84; // width of the overview
  const element = (name, text = "", kind = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  class GraphView {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector("script").textContent);
      this.area = root.querySelector(".canvas");
      this.canvas = root.querySelector("canvas");
      this.pen = this.canvas.getContext("2d");
      this.map = document.createElement("canvas");
      this.count = this.data.boxes.length;
      this.inputs = Array.from({ length: this.count }, () => []);
      this.outputs = Array.from({ length: this.count }, () => []);
      this.ways = this.data.edges.map((edge) => this.way(edge));
      this.cut = Array.from({ length: this.count }, () => null);
      this.texts = null; // what is searched; made when it is
      this.colouring = this.data.colourings[0];
      this.matches = [];
      this.isMatch = null;
      this.chosen = -1;
      this.bounds = this.measure();
      this.view = { x: 0, y: 0, scale: 1 };
      this.listen();
      this.measureArea();
      this.readColours();
      this.begin();
    }

    way([source, target, corners]) {
      // Corners of an edge, and the box around them.
      this.outputs[source].push(target);
      this.inputs[target].push(source);
      const [from, to] = [this.data.boxes[source], this.data.boxes[target]];
      const points = corners.length ? corners : [from[0], from[1] + from[3] / 2, to[0], to[1] - to[3] / 2];
      const xs = points.filter((_, n) => n % 2 === 0);
      const ys = points.filter((_, n) => n % 2 === 1);
      return { source, target, points, box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)] };
    }

    measure() {
      const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
      for (const [x, y, w, h] of this.data.boxes) {
        box.left = Math.min(box.left, x - w / 2);
        box.right = Math.max(box.right, x + w / 2);
        box.top = Math.min(box.top, y - h / 2);
        box.bottom = Math.max(box.bottom, y + h / 2);
      }
      return this.count ? box : { left: 0, top: 0, right: 1, bottom: 1 };
    }

    // ---- what is seen ----

    measureArea() {
      const ratio = devicePixelRatio || 1;
      this.width = this.area.clientWidth;
      this.height = this.area.clientHeight;
      this.ratio = ratio;
      this.canvas.width = Math.max(1, Math.round(this.width * ratio));
      this.canvas.height = Math.max(1, Math.round(this.height * ratio));
    }

    begin() {
      // The whole graph if its texts can be read then, else its beginning.
      this.fit();
      if (this.view.scale < TEXT_FROM && this.count) {
        const [x, y] = this.data.boxes[0];
        this.view.scale = 0.9;
        this.view.x = x - (this.width - (this.hasMap() ? MAP : 0)) / 2 / this.view.scale;
        this.view.y = y - 60 / this.view.scale;
      }
      this.redraw();
    }

    fit() {
      const { left, right, top, bottom } = this.bounds;
      const room = this.width - (this.hasMap() ? MAP : 0);
      const scale = Math.min((room - 24) / (right - left), (this.height - 24) / (bottom - top), 1.2);
      this.view.scale = Math.max(LEAST, scale);
      this.view.x = (left + right) / 2 - room / 2 / this.view.scale;
      this.view.y = (top + bottom) / 2 - this.height / 2 / this.view.scale;
      this.redraw();
    }

    hasMap() {
      const { left, right, top, bottom } = this.bounds;
      return this.width > 3 * MAP && (bottom - top > 1.5 * this.height || right - left > 1.5 * this.width);
    }

    zoom(factor, x = this.width / 2, y = this.height / 2) {
      const scale = Math.min(MOST, Math.max(LEAST, this.view.scale * factor));
      this.view.x += x / this.view.scale - x / scale;
      this.view.y += y / this.view.scale - y / scale;
      this.view.scale = scale;
      this.redraw();
    }

    pan(x, y) {
      // In pixels of the screen; a part of the graph always stays in sight.
      const { left, right, top, bottom } = this.bounds;
      const { scale } = this.view;
      const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
      this.view.x = clamp(this.view.x + x / scale, left - this.width * 0.8 / scale, right - this.width * 0.2 / scale);
      this.view.y = clamp(this.view.y + y / scale, top - this.height * 0.8 / scale, bottom - this.height * 0.2 / scale);
      this.redraw();
    }

    bringIn(node) {
      const [x, y, w, h] = this.data.boxes[node];
      if (this.view.scale < TEXT_FROM) this.view.scale = 0.9;
      const { scale } = this.view;
      const room = this.width - (this.hasMap() ? MAP : 0);
      const isSeen = (x - w / 2 - this.view.x) * scale > 8 && (x + w / 2 - this.view.x) * scale < room - 8
        && (y - h / 2 - this.view.y) * scale > 8 && (y + h / 2 - this.view.y) * scale < this.height - 8;
      if (!isSeen) {
        this.view.x = x - room / 2 / scale;
        this.view.y = y - this.height / 2 / scale;
      }
      this.redraw();
    }

    // ---- colours ----

    readColours() {
      const style = getComputedStyle(this.root);
      const named = (name) => style.getPropertyValue(name).trim();
      this.ink = {
        front: named("--front"), back: named("--back"), soft: named("--soft"), line: named("--line"),
        dim: named("--dim"), accent: named("--accent"), edge: named("--edge"),
      };
      const probe = this.root.appendChild(element("i"));
      const read = (hue, colour) => {
        probe.className = `c${hue}`;
        probe.style.color = colour;
        return getComputedStyle(probe).color;
      };
      this.tints = Array.from({ length: 10 }, (_, hue) => read(hue, "hsl(var(--hue) var(--tint))"));
      this.isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
      probe.remove();
      this.colourNodes();
    }

    shade(part) {
      return this.isDark ? `hsl(26 ${30 + 50 * part}% ${20 + 16 * part}%)` : `hsl(32 95% ${97 - 35 * part}%)`;
    }

    colourNodes() {
      const { of, names, colours, most } = this.colouring;
      const legend = this.root.querySelector(".legend");
      const key = (colour, text) => {
        const item = element("li");
        const mark = element("i", "", "key");
        mark.style.background = colour;
        item.append(mark, text);
        return item;
      };
      if (names) {
        this.fills = of.map((name) => this.tints[colours[name]]);
        const counts = names.map(() => 0);
        for (const name of of) counts[name] += 1;
        legend.replaceChildren(...names.map((name, n) => key(this.tints[colours[n]], `${name} (${counts[n]})`)));
      } else {
        this.fills = of.map((amount) => (amount === null ? this.ink.soft : this.shade(most ? Math.sqrt(amount / most) : 0)));
        const longest = of.indexOf(most);
        legend.replaceChildren(
          key(this.shade(0), "little"), key(this.shade(0.5), "some"),
          key(this.shade(1), longest < 0 ? "most" : `most: ${this.colouring.texts[longest]}`), key(this.ink.soft, "not known"));
      }
      this.drawMap();
      this.redraw();
    }

    // ---- drawing ----

    redraw() {
      this.root.dataset.scale = this.view.scale.toFixed(4);
      this.root.dataset.x = this.view.x.toFixed(1);
      this.root.dataset.y = this.view.y.toFixed(1);
      if (this.isAsked) return;
      this.isAsked = true;
      requestAnimationFrame(() => {
        this.isAsked = false;
        this.draw();
      });
    }

    draw() {
      const { pen, view: { x, y, scale }, ratio, ink } = this;
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.fillStyle = ink.back;
      pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
      pen.setTransform(scale * ratio, 0, 0, scale * ratio, -x * scale * ratio, -y * scale * ratio);
      const seen = [x, y, x + this.width / scale, y + this.height / scale];
      this.drawEdges(seen);
      this.drawNodes(seen);
      if (this.hasMap()) this.showMap(seen);
    }

    drawEdges(seen) {
      const { pen, ink, view: { scale } } = this;
      const apart = (box) => box[2] < seen[0] || box[0] > seen[2] || box[3] < seen[1] || box[1] > seen[3];
      const trace = (points) => {
        const n = points.length;
        pen.moveTo(points[0], points[1]);
        if (n === 4) {
          const middle = (points[1] + points[3]) / 2;
          pen.bezierCurveTo(points[0], middle, points[2], middle, points[2], points[3]);
          return;
        }
        for (let i = 2; i < n - 2; i += 2) {
          pen.quadraticCurveTo(points[i], points[i + 1], (points[i] + points[i + 2]) / 2, (points[i + 1] + points[i + 3]) / 2);
        }
        pen.lineTo(points[n - 2], points[n - 1]);
      };
      const visible = this.ways.filter((way) => !apart(way.box));
      const stroke = (ways, colour, width) => {
        if (!ways.length) return;
        pen.strokeStyle = colour;
        pen.lineWidth = Math.max(width, 0.7 / scale);
        pen.beginPath();
        for (const way of ways) trace(way.points);
        pen.stroke();
        if (scale < 0.3) return;
        pen.fillStyle = colour;
        pen.beginPath();
        for (const { points } of ways) {
          const [tipX, tipY] = points.slice(-2);
          pen.moveTo(tipX, tipY);
          pen.lineTo(tipX - 3.5, tipY - 7);
          pen.lineTo(tipX + 3.5, tipY - 7);
          pen.closePath();
        }
        pen.fill();
      };
      const isMarked = (way) => way.source === this.chosen || way.target === this.chosen;
      stroke(visible.filter((way) => !isMarked(way)), ink.edge, 1.2);
      stroke(visible.filter(isMarked), ink.accent, 2.5);
    }

    drawNodes(seen) {
      const { pen, ink, view: { scale }, data } = this;
      const byFill = new Map();
      const visible = [];
      data.boxes.forEach(([x, y, w, h], node) => {
        if (x + w / 2 < seen[0] || x - w / 2 > seen[2] || y + h / 2 < seen[1] || y - h / 2 > seen[3]) return;
        visible.push(node);
        const isFaint = this.isMatch !== null && !this.isMatch[node];
        const fill = isFaint ? ink.back : this.fills[node];
        if (!byFill.has(fill)) byFill.set(fill, []);
        byFill.get(fill).push(node);
      });
      pen.lineWidth = Math.max(1, 0.5 / scale);
      pen.strokeStyle = ink.dim;
      for (const [fill, nodes] of byFill) {
        pen.fillStyle = fill;
        pen.beginPath();
        for (const node of nodes) {
          const [x, y, w, h] = data.boxes[node];
          if (scale < 0.3) pen.rect(x - w / 2, y - h / 2, w, h);
          else pen.roundRect(x - w / 2, y - h / 2, w, h, 5);
        }
        pen.fill();
        if (scale > 0.15) pen.stroke();
      }
      const ring = (node, colour, width) => {
        const [x, y, w, h] = data.boxes[node];
        pen.strokeStyle = colour;
        pen.lineWidth = width / Math.min(scale, 1);
        pen.strokeRect(x - w / 2 - 2, y - h / 2 - 2, w + 4, h + 4);
      };
      if (this.isMatch) for (const node of visible) if (this.isMatch[node]) ring(node, ink.accent, 1.5);
      if (this.chosen >= 0) ring(this.chosen, ink.accent, 3.5);
      if (scale >= TEXT_FROM) for (const node of visible) this.write(node);
    }

    write(node) {
      const { pen, ink, data } = this;
      const [x, y, w] = data.boxes[node];
      this.cut[node] ??= [this.shorten(data.titles[node], w - 14, BOLD, true), this.shorten(data.subtitles[node], w - 14, FONT, false)];
      const [title, subtitle] = this.cut[node];
      const isFaint = this.isMatch !== null && !this.isMatch[node];
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillStyle = isFaint ? ink.dim : ink.front;
      pen.font = BOLD;
      pen.fillText(title, x, y - (subtitle ? 8 : 0));
      pen.font = FONT;
      if (subtitle) pen.fillText(subtitle, x, y + 8);
    }

    shorten(text, room, font, keepsEnd) {
      // The end of a long name says most; of other texts the beginning does.
      this.pen.font = font;
      if (text.length < 200 && this.pen.measureText(text).width <= room) return text;
      const cut = (length) => (keepsEnd ? `…${text.slice(text.length - length)}` : `${text.slice(0, length)}…`);
      let [low, high] = [0, Math.min(text.length, 200)];
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (this.pen.measureText(cut(middle)).width <= room) low = middle;
        else high = middle;
      }
      return cut(low);
    }

    // ---- the overview ----

    mapScale() {
      const { left, right, top, bottom } = this.bounds;
      return [(MAP - 12) / (right - left), (this.height - 12) / (bottom - top)];
    }

    drawMap() {
      if (!this.hasMap()) return;
      const { map, bounds, ratio } = this;
      map.width = MAP * ratio;
      map.height = Math.max(1, this.height * ratio);
      const pen = map.getContext("2d");
      pen.scale(ratio, ratio);
      pen.fillStyle = this.ink.soft;
      pen.fillRect(0, 0, MAP, this.height);
      const [across, down] = this.mapScale();
      this.data.boxes.forEach(([x, y, w, h], node) => {
        const isFaint = this.isMatch !== null && !this.isMatch[node];
        pen.fillStyle = isFaint ? this.ink.line : this.isMatch ? this.ink.accent : this.fills[node];
        pen.fillRect(6 + (x - w / 2 - bounds.left) * across, 6 + (y - h / 2 - bounds.top) * down,
          Math.max(2, w * across), Math.max(1, h * down * 0.9));
      });
    }

    showMap(seen) {
      const { pen, ink, ratio, bounds } = this;
      const left = this.width - MAP;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.drawImage(this.map, left, 0, MAP, this.height);
      const [across, down] = this.mapScale();
      const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
      const x0 = clamp(left + 6 + (seen[0] - bounds.left) * across, left + 1, this.width - 3);
      const x1 = clamp(left + 6 + (seen[2] - bounds.left) * across, left + 3, this.width - 1);
      const y0 = clamp(6 + (seen[1] - bounds.top) * down, 1, this.height - 3);
      const y1 = clamp(6 + (seen[3] - bounds.top) * down, 3, this.height - 1);
      pen.strokeStyle = ink.accent;
      pen.lineWidth = 2;
      pen.strokeRect(x0, y0, Math.max(x1 - x0, 4), Math.max(y1 - y0, 4));
    }

    goByMap(x, y) {
      const [across, down] = this.mapScale();
      const { scale } = this.view;
      this.view.x = this.bounds.left + (x - (this.width - MAP) - 6) / across - (this.width - MAP) / 2 / scale;
      this.view.y = this.bounds.top + (y - 6) / down - this.height / 2 / scale;
      this.pan(0, 0);
    }

    // ---- choosing and searching ----

    at(x, y) {
      const [px, py] = [this.view.x + x / this.view.scale, this.view.y + y / this.view.scale];
      const slack = 3 / this.view.scale;
      return this.data.boxes.findIndex(([cx, cy, w, h]) =>
        Math.abs(px - cx) <= w / 2 + slack && Math.abs(py - cy) <= h / 2 + slack);
    }

    choose(node) {
      this.chosen = node;
      this.root.dataset.chosen = node < 0 ? "" : this.data.titles[node];
      const panel = this.root.querySelector(".chosen");
      if (node < 0) {
        panel.replaceChildren(element("p", "No layer is chosen.", "dim"));
        this.redraw();
        return;
      }
      const list = element("dl", "", "facts");
      const fact = (name, content) => {
        const line = element("div");
        const text = element("dd");
        text.append(...content);
        line.append(element("dt", name), text);
        list.append(line);
      };
      for (const [name, text] of this.data.facts[node]) fact(this.data.factNames[name], breakable(text));
      const links = (nodes) => [...new Set(nodes)].flatMap((other, n) => {
        const link = element("button");
        link.append(...breakable(this.data.titles[other]));
        link.type = "button";
        link.addEventListener("click", () => { this.choose(other); this.area.focus(); });
        return n ? [", ", link] : [link];
      });
      if (this.inputs[node].length) fact("reads from", links(this.inputs[node]));
      if (this.outputs[node].length) fact("is read by", links(this.outputs[node]));
      const heading = element("h3");
      heading.append(...breakable(this.data.titles[node]));
      panel.replaceChildren(heading, element("p", this.data.subtitles[node], "dim"), list);
      this.bringIn(node);
    }

    search(text) {
      this.texts ??= this.data.titles.map((title, n) =>
        [title, this.data.subtitles[n], ...this.data.facts[n].map((fact) => fact[1])].join("\n").toLowerCase());
      const words = text.toLowerCase().split(/\s+/).filter(Boolean);
      this.isMatch = words.length ? this.texts.map((known) => words.every((word) => known.includes(word))) : null;
      this.matches = this.isMatch ? [...this.isMatch.keys()].filter((node) => this.isMatch[node]) : [];
      this.tellMatches();
      this.drawMap();
      this.redraw();
    }

    tellMatches() {
      const at = this.matches.indexOf(this.chosen);
      const where = at >= 0 ? `${at + 1} of ` : "";
      this.root.querySelector(".found").textContent = this.isMatch ? `${where}${this.matches.length} found` : "";
    }

    nextMatch(step) {
      if (!this.matches.length) return;
      const at = this.matches.indexOf(this.chosen);
      const next = at < 0 ? (step > 0 ? 0 : this.matches.length - 1) : (at + step + this.matches.length) % this.matches.length;
      this.choose(this.matches[next]);
      this.tellMatches();
    }

    beside(step) {
      // The next node of the same row; the next one at all where there is none.
      const [x, y, , h] = this.data.boxes[this.chosen];
      let best = -1;
      this.data.boxes.forEach(([ox, oy], node) => {
        const isAhead = Math.abs(oy - y) < h / 2 && (ox - x) * step > 0;
        if (isAhead && (best < 0 || (this.data.boxes[best][0] - ox) * step > 0)) best = node;
      });
      return best >= 0 ? best : Math.min(Math.max(this.chosen + step, 0), this.count - 1);
    }

    // ---- hands ----

    listen() {
      const { root, area } = this;
      const select = root.querySelector("select");
      this.data.colourings.forEach((colouring, n) => select.add(new Option(colouring.name, String(n))));
      select.addEventListener("change", () => {
        this.colouring = this.data.colourings[Number(select.value)];
        this.colourNodes();
      });
      const input = root.querySelector("input");
      input.addEventListener("input", () => this.search(input.value));
      input.addEventListener("keydown", (event) => {
        if (event.key === "Enter") this.nextMatch(event.shiftKey ? -1 : 1);
        else if (event.key === "Escape") { input.value = ""; this.search(""); } else return;
        event.preventDefault();
      });
      const actions = { in: () => this.zoom(1.4), out: () => this.zoom(1 / 1.4), fit: () => this.fit() };
      for (const button of root.querySelectorAll("[data-do]")) {
        button.addEventListener("click", actions[button.dataset.do]);
      }
      area.addEventListener("keydown", (event) => this.onKey(event));
      area.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
      this.listenToPointers();
      document.addEventListener("themechange", () => this.readColours());
      new ResizeObserver(() => {
        if (area.clientWidth === this.width && area.clientHeight === this.height) return;
        this.measureArea();
        this.drawMap();
        this.draw();
      }).observe(area);
    }

    listenToPointers() {
      const { area } = this;
      const pointers = new Map();
      let moved = 0;
      let onMap = false;
      const place = (event) => {
        const box = area.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
      const apart = () => {
        const [a, b] = [...pointers.values()];
        return Math.hypot(a[0] - b[0], a[1] - b[1]);
      };
      area.addEventListener("pointerdown", (event) => {
        if (event.button) return;
        area.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, place(event));
        moved = 0;
        const [x, y] = place(event);
        onMap = this.hasMap() && x > this.width - MAP;
        if (onMap) this.goByMap(x, y);
        else area.classList.add("moving");
      });
      area.addEventListener("pointermove", (event) => {
        this.hover(event, pointers.size ? -1 : this.at(...place(event)));
        const before = pointers.get(event.pointerId);
        if (!before) return;
        const [x, y] = place(event);
        const distance = pointers.size === 2 ? apart() : 0;
        pointers.set(event.pointerId, [x, y]);
        moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
        if (onMap) this.goByMap(x, y);
        else if (pointers.size === 2) this.zoom(apart() / (distance || 1), x, y);
        else if (moved > 4) this.pan(before[0] - x, before[1] - y);
      });
      const end = (event) => {
        if (!pointers.delete(event.pointerId)) return;
        area.classList.remove("moving");
        if (event.type === "pointerup" && moved <= 4 && !onMap && !pointers.size) {
          const node = this.at(...place(event));
          this.choose(node);
          this.tellMatches();
        }
      };
      area.addEventListener("pointerleave", (event) => this.hover(event, -1));
      area.addEventListener("pointerup", end);
      area.addEventListener("pointercancel", end);
    }

    hover(event, node) {
      // The whole name of the layer under the pointer, which its box may not have room for.
      const amount = node < 0 ? "" : this.colouring.texts?.[node];
      const names = node < 0 ? [] : this.data.facts[node].filter(([name]) => this.data.factNames[name] === "name");
      const full = names.map(([, name]) => name).join(" + ") || this.data.titles[node];
      const text = node < 0 ? "" : `${full}: ${this.data.subtitles[node]}${amount ? `, ${amount}` : ""}`;
      document.dispatchEvent(new CustomEvent("armpy-tip", { detail: { text, event } }));
    }

    onWheel(event) {
      // Without focus and without Ctrl the wheel moves the page, as everywhere.
      if (event.ctrlKey || event.metaKey) {
        const box = this.area.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
      } else if (document.activeElement === this.area) {
        this.pan(event.deltaX, event.deltaY);
      } else {
        return;
      }
      event.preventDefault();
    }

    onKey(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const moves = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
      const move = moves[event.key];
      if (move && event.shiftKey) this.pan(80 * move[0], 80 * move[1]);
      else if (move && this.count) this.go(move);
      else if (event.key === "+" || event.key === "=") this.zoom(1.4);
      else if (event.key === "-") this.zoom(1 / 1.4);
      else if (event.key === "0") this.fit();
      else if (event.key === "Home" && this.count) this.choose(0);
      else if (event.key === "End" && this.count) this.choose(this.count - 1);
      else if (event.key === "Escape") this.choose(-1);
      else return;
      event.preventDefault();
    }

    go([across, down]) {
      if (this.chosen < 0) this.choose(0);
      else if (across) this.choose(this.beside(across));
      else {
        const next = (down > 0 ? this.outputs : this.inputs)[this.chosen][0];
        if (next !== undefined) this.choose(next);
      }
    }
  }

  for (const root of document.querySelectorAll(".graph")) root.graphView = new GraphView(root);
})();
