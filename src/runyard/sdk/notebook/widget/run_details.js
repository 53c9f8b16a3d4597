// Live view of a run in a notebook: status and error, charts, and the last lines of the log.
// A plain module without a build step or other resources. Text of users is set through textContent only.

const MAX_POINTS = 1200; // per chart; with more points, each interval keeps its minimum and maximum
const MAX_LOG = 200000; // characters
const POLL_AFTER_MS = 3000; // without an update: not every notebook forwards what a thread of the kernel sends
const WIDTH = 300, HEIGHT = 120, LEFT = 44, RIGHT = 8, TOP = 10; // LEFT leaves space for the scale
const ENDED = ["Completed", "Failed", "Canceled"];

// One store per model, so that two views of one run share their data.
const stores = new WeakMap();

class Store {
  constructor(model) {
    this.model = model;
    this.seq = -1;
    this.view = null;
    this.series = new Map();
    this.more = 0;
    this.log = "";
    this.listeners = new Set();
    this.updatedAt = Date.now();
    this.apply = this.apply.bind(this);
    model.on("change:message", this.apply);
    this.apply();
  }

  apply() {
    const update = this.model.get("message");
    if (!update || update.seq === undefined || (update.seq <= this.seq && !update.full)) return;
    this.updatedAt = Date.now();
    if (!update.full && update.seq !== this.seq + 1) {
      this.request(); // an update was missed: the page was reloaded, or the module was loaded late
      return;
    }
    if (update.full) {
      this.series = new Map();
      this.log = "";
    }
    this.seq = update.seq;
    this.view = update.view || this.view;
    this.more = update.more === undefined ? this.more : update.more;
    for (const [name, points] of Object.entries(update.points || {})) this.add(name, points);
    if (update.log) this.log = lastLines(this.log + update.log);
    for (const listener of this.listeners) listener();
  }

  add(name, points) {
    const old = points.full ? undefined : this.series.get(name);
    const x = old ? old.x.concat(points.x) : points.x;
    const y = old ? old.y.concat(points.y) : points.y;
    this.series.set(name, x.length > MAX_POINTS ? downsample(x, y) : { x, y });
  }

  request() {
    this.updatedAt = Date.now();
    this.model.send({ received: this.seq });
  }

  tick() {
    if (this.view && !ENDED.includes(this.view.status) && Date.now() - this.updatedAt > POLL_AFTER_MS) this.request();
  }
}

export default {
  initialize({ model }) {
    stores.set(model, new Store(model));
  },
  render({ model, el }) {
    if (!stores.has(model)) stores.set(model, new Store(model));
    const store = stores.get(model);
    const page = new Page(el);
    const draw = () => page.draw(store);
    store.listeners.add(draw);
    draw();
    const clock = setInterval(() => {
      store.tick();
      page.drawDuration(store.view);
    }, 1000);
    return () => {
      clearInterval(clock);
      store.listeners.delete(draw);
    };
  },
};

class Page {
  constructor(el) {
    this.root = add(el, "section", "runyard-run");
    const head = add(this.root, "header");
    this.status = add(head, "span", "status");
    this.status.setAttribute("role", "status");
    this.name = add(head, "strong", "name");
    this.duration = add(head, "span", "duration");
    this.activity = add(head, "span", "activity");
    this.error = add(this.root, "div", "error");
    this.error.setAttribute("role", "alert");
    this.charts = add(this.root, "div", "charts");
    this.drawn = new Map();
    this.more = add(this.root, "p", "more");
    this.log = add(this.root, "pre", "log");
    this.log.setAttribute("role", "log");
    this.log.setAttribute("aria-label", "last lines of the log");
    this.log.tabIndex = 0;
  }

  draw(store) {
    const view = store.view;
    if (!view) return;
    this.root.setAttribute("aria-label", `run ${view.run_id}`);
    this.status.textContent = view.status;
    this.status.dataset.status = view.status;
    this.name.textContent = `${view.experiment} · ${view.run_id}`;
    this.activity.textContent = ENDED.includes(view.status) ? "" : view.activity || "";
    this.drawDuration(view);
    this.drawError(view);
    for (const name of [...this.drawn.keys()].filter((name) => !store.series.has(name))) {
      this.drawn.get(name).figure.remove();
      this.drawn.delete(name);
    }
    for (const [name, points] of store.series) {
      if (!this.drawn.has(name)) this.drawn.set(name, new Chart(this.charts, name));
      this.drawn.get(name).draw(points);
    }
    this.more.hidden = !store.more;
    this.more.textContent = store.more ? `${store.more} more metrics: see the studio` : "";
    this.drawLog(store.log);
  }

  drawDuration(view) {
    if (!view || !view.started_at) return;
    const end = view.ended_at || Date.now() / 1000;
    this.duration.textContent = durationText(Math.max(0, end - view.started_at));
  }

  drawError(view) {
    const message = view.error || "";
    if (this.error.dataset.text === message + view.details) return;
    this.error.dataset.text = message + view.details;
    this.error.hidden = !message;
    this.error.replaceChildren();
    if (!message) return;
    add(this.error, "strong", "", message);
    if (view.details) add(this.error, "pre", "", view.details);
  }

  drawLog(text) {
    if (this.log.dataset.length === String(text.length) && this.log.textContent === text) return;
    const follows = this.log.scrollTop + this.log.clientHeight >= this.log.scrollHeight - 8;
    this.log.textContent = text;
    this.log.dataset.length = String(text.length);
    this.log.hidden = !text;
    if (follows) this.log.scrollTop = this.log.scrollHeight;
  }
}

class Chart {
  constructor(parent, name) {
    this.figure = add(parent, "figure");
    const caption = add(this.figure, "figcaption");
    add(caption, "span", "metric", name).title = name;
    this.value = add(caption, "span", "value");
    this.svg = shape(this.figure, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
    this.line = shape(this.svg, "path", { class: "line", fill: "none" });
    this.dot = shape(this.svg, "circle", { class: "dot", r: 3, visibility: "hidden" });
    this.high = shape(this.svg, "text", { x: LEFT - 6, y: TOP + 4, class: "scale", "text-anchor": "end" });
    this.low = shape(this.svg, "text", { x: LEFT - 6, y: HEIGHT - TOP + 3, class: "scale", "text-anchor": "end" });
    this.name = name;
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.point(null));
  }

  draw(points) {
    this.points = points;
    const { x, y } = points;
    const values = y.filter((value) => value !== null);
    this.last = values.length ? numberText(values[values.length - 1]) : "";
    this.value.textContent = this.last;
    if (!values.length) return;
    let minY = Infinity, maxY = -Infinity, minX = Infinity, maxX = -Infinity;
    for (const value of values) {
      if (value < minY) minY = value;
      if (value > maxY) maxY = value;
    }
    for (const step of x) {
      if (step < minX) minX = step;
      if (step > maxX) maxX = step;
    }
    const flat = minY === maxY;
    this.toX = (value) => LEFT + ((WIDTH - LEFT - RIGHT) * (value - minX)) / (maxX - minX || 1);
    this.toY = (value) => (flat ? HEIGHT / 2 : HEIGHT - TOP - ((HEIGHT - 2 * TOP) * (value - minY)) / (maxY - minY));
    let path = "", pen = "M";
    for (let index = 0; index < y.length; index++) {
      if (y[index] === null) {
        pen = "M"; // a gap for a value that is not a number
        continue;
      }
      path += `${pen}${this.toX(x[index]).toFixed(1)} ${this.toY(y[index]).toFixed(1)}`;
      pen = "L";
    }
    this.line.setAttribute("d", values.length === 1 ? `${path}h0.1` : path);
    this.line.classList.toggle("single", values.length === 1);
    this.high.textContent = flat ? "" : numberText(maxY, 3);
    this.low.textContent = flat ? "" : numberText(minY, 3);
    this.svg.setAttribute("aria-label", `${this.name}: ${y.length} points, last ${this.last}`);
  }

  point(event) {
    const { x, y } = this.points || { x: [], y: [] };
    if (!event || !x.length || !this.toX) {
      this.dot.setAttribute("visibility", "hidden");
      this.value.textContent = this.last;
      return;
    }
    const box = this.svg.getBoundingClientRect();
    const pointerX = ((event.clientX - box.left) * WIDTH) / box.width;
    let nearest = -1;
    for (let index = 0; index < x.length; index++) {
      if (y[index] === null) continue;
      if (nearest < 0 || Math.abs(this.toX(x[index]) - pointerX) < Math.abs(this.toX(x[nearest]) - pointerX)) nearest = index;
    }
    if (nearest < 0) return;
    this.dot.setAttribute("cx", this.toX(x[nearest]));
    this.dot.setAttribute("cy", this.toY(y[nearest]));
    this.dot.setAttribute("visibility", "visible");
    this.value.textContent = `${numberText(y[nearest])} at ${x[nearest]}`;
  }
}

function downsample(x, y) {
  const indices = [];
  const size = (x.length * 2) / MAX_POINTS;
  for (let start = 0; start < x.length; start += size) {
    const end = Math.min(Math.floor(start + size), x.length);
    let min = -1, max = -1;
    for (let index = Math.floor(start); index < end; index++) {
      if (y[index] === null) continue;
      if (min < 0 || y[index] < y[min]) min = index;
      if (max < 0 || y[index] > y[max]) max = index;
    }
    if (min >= 0) indices.push(...(min === max ? [min] : [Math.min(min, max), Math.max(min, max)]));
  }
  return { x: indices.map((index) => x[index]), y: indices.map((index) => y[index]) };
}

function lastLines(log) {
  const text = log.replace(/[^\n]*\r(?=[^\n])/g, ""); // a progress bar overwrites itself
  if (text.length <= MAX_LOG) return text;
  const tail = text.slice(text.length - MAX_LOG);
  return tail.slice(tail.indexOf("\n") + 1);
}

function numberText(value, digits = 5) {
  if (Number.isInteger(value) && Math.abs(value) < 10 ** digits) return String(value);
  const tiny = value !== 0 && Math.abs(value) < 10 ** -digits;
  return tiny || Math.abs(value) >= 10 ** (digits + 1) ? value.toExponential(digits - 2) : String(Number(value.toPrecision(digits)));
}

function durationText(seconds) {
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

function add(parent, tag, name = "", text = "") {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text) element.textContent = text;
  parent.appendChild(element);
  return element;
}

function shape(parent, tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  parent.appendChild(element);
  return element;
}
