// A run in a notebook: what it is and why it ended first, then its charts as they grow, then the end of its log.
// A plain module: no build, nothing loaded from elsewhere. Text of users goes through textContent alone.

const MOST_POINTS = 1200; // per chart; beyond that each stretch keeps its least and greatest
const MOST_LOG = 200000; // characters
const ASK_AFTER_MS = 3000; // of silence: not every notebook passes on what a thread of the kernel sends
const WIDTH = 300, HEIGHT = 120, LEFT = 44, RIGHT = 8, TOP = 10; // room for the scale at the left
const ENDED = ["Completed", "Failed", "Canceled"];

// One for each model, so that two views of one run share what came.
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
    this.heardAt = Date.now();
    this.take = this.take.bind(this);
    model.on("change:news", this.take);
    this.take();
  }

  take() {
    const news = this.model.get("news");
    if (!news || news.seq === undefined || (news.seq <= this.seq && !news.whole)) return;
    this.heardAt = Date.now();
    if (!news.whole && news.seq !== this.seq + 1) {
      this.ask(); // something was missed: a reloaded page, or a module that came after the first news
      return;
    }
    if (news.whole) {
      this.series = new Map();
      this.log = "";
    }
    this.seq = news.seq;
    this.view = news.view || this.view;
    this.more = news.more === undefined ? this.more : news.more;
    for (const [name, points] of Object.entries(news.points || {})) this.add(name, points);
    if (news.log) this.log = lastLines(this.log + news.log);
    for (const listener of this.listeners) listener();
  }

  add(name, points) {
    const old = points.whole ? undefined : this.series.get(name);
    const x = old ? old.x.concat(points.x) : points.x;
    const y = old ? old.y.concat(points.y) : points.y;
    this.series.set(name, x.length > MOST_POINTS ? thinned(x, y) : { x, y });
  }

  ask() {
    this.heardAt = Date.now();
    this.model.send({ have: this.seq });
  }

  tick() {
    if (this.view && !ENDED.includes(this.view.status) && Date.now() - this.heardAt > ASK_AFTER_MS) this.ask();
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
      page.time(store.view);
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
    this.took = add(head, "span", "took");
    this.doing = add(head, "span", "doing");
    this.error = add(this.root, "div", "error");
    this.error.setAttribute("role", "alert");
    this.charts = add(this.root, "div", "charts");
    this.drawn = new Map();
    this.more = add(this.root, "p", "more");
    this.log = add(this.root, "pre", "log");
    this.log.setAttribute("role", "log");
    this.log.setAttribute("aria-label", "the end of the log");
    this.log.tabIndex = 0;
  }

  draw(store) {
    const view = store.view;
    if (!view) return;
    this.root.setAttribute("aria-label", `run ${view.run_id}`);
    this.status.textContent = view.status;
    this.status.dataset.status = view.status;
    this.name.textContent = `${view.experiment} · ${view.run_id}`;
    this.doing.textContent = ENDED.includes(view.status) ? "" : view.activity || "";
    this.time(view);
    this.fail(view);
    for (const name of [...this.drawn.keys()].filter((name) => !store.series.has(name))) {
      this.drawn.get(name).figure.remove();
      this.drawn.delete(name);
    }
    for (const [name, points] of store.series) {
      if (!this.drawn.has(name)) this.drawn.set(name, new Chart(this.charts, name));
      this.drawn.get(name).draw(points);
    }
    this.more.hidden = !store.more;
    this.more.textContent = store.more ? `and ${store.more} more metrics: see them all in the studio` : "";
    this.write(store.log);
  }

  time(view) {
    if (!view || !view.started_at) return;
    const end = view.ended_at || Date.now() / 1000;
    this.took.textContent = duration(Math.max(0, end - view.started_at));
  }

  fail(view) {
    const said = view.error || "";
    if (this.error.dataset.said === said + view.details) return;
    this.error.dataset.said = said + view.details;
    this.error.hidden = !said;
    this.error.replaceChildren();
    if (!said) return;
    add(this.error, "strong", "", said);
    if (view.details) add(this.error, "pre", "", view.details);
  }

  write(text) {
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
    const shown = y.filter((value) => value !== null);
    this.last = shown.length ? short(shown[shown.length - 1]) : "";
    this.value.textContent = this.last;
    if (!shown.length) return;
    let least = Infinity, greatest = -Infinity, first = Infinity, final = -Infinity;
    for (const value of shown) {
      if (value < least) least = value;
      if (value > greatest) greatest = value;
    }
    for (const place of x) {
      if (place < first) first = place;
      if (place > final) final = place;
    }
    const flat = least === greatest;
    this.toX = (value) => LEFT + ((WIDTH - LEFT - RIGHT) * (value - first)) / (final - first || 1);
    this.toY = (value) => (flat ? HEIGHT / 2 : HEIGHT - TOP - ((HEIGHT - 2 * TOP) * (value - least)) / (greatest - least));
    let path = "", pen = "M";
    for (let index = 0; index < y.length; index++) {
      if (y[index] === null) {
        pen = "M"; // a gap where there is no number
        continue;
      }
      path += `${pen}${this.toX(x[index]).toFixed(1)} ${this.toY(y[index]).toFixed(1)}`;
      pen = "L";
    }
    this.line.setAttribute("d", shown.length === 1 ? `${path}h0.1` : path);
    this.line.classList.toggle("single", shown.length === 1);
    this.high.textContent = flat ? "" : short(greatest, 3);
    this.low.textContent = flat ? "" : short(least, 3);
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
    const wanted = ((event.clientX - box.left) * WIDTH) / box.width;
    let best = -1;
    for (let index = 0; index < x.length; index++) {
      if (y[index] === null) continue;
      if (best < 0 || Math.abs(this.toX(x[index]) - wanted) < Math.abs(this.toX(x[best]) - wanted)) best = index;
    }
    if (best < 0) return;
    this.dot.setAttribute("cx", this.toX(x[best]));
    this.dot.setAttribute("cy", this.toY(y[best]));
    this.dot.setAttribute("visibility", "visible");
    this.value.textContent = `${short(y[best])} at ${x[best]}`;
  }
}

function thinned(x, y) {
  const kept = [];
  const stretch = (x.length * 2) / MOST_POINTS;
  for (let begin = 0; begin < x.length; begin += stretch) {
    const end = Math.min(Math.floor(begin + stretch), x.length);
    let least = -1, greatest = -1;
    for (let index = Math.floor(begin); index < end; index++) {
      if (y[index] === null) continue;
      if (least < 0 || y[index] < y[least]) least = index;
      if (greatest < 0 || y[index] > y[greatest]) greatest = index;
    }
    if (least >= 0) kept.push(...(least === greatest ? [least] : [Math.min(least, greatest), Math.max(least, greatest)]));
  }
  return { x: kept.map((index) => x[index]), y: kept.map((index) => y[index]) };
}

function lastLines(whole) {
  const text = whole.replace(/[^\n]*\r(?=[^\n])/g, ""); // a progress bar writes over itself
  if (text.length <= MOST_LOG) return text;
  const cut = text.slice(text.length - MOST_LOG);
  return cut.slice(cut.indexOf("\n") + 1);
}

function short(value, digits = 5) {
  if (Number.isInteger(value) && Math.abs(value) < 10 ** digits) return String(value);
  const tiny = value !== 0 && Math.abs(value) < 10 ** -digits;
  return tiny || Math.abs(value) >= 10 ** (digits + 1) ? value.toExponential(digits - 2) : String(Number(value.toPrecision(digits)));
}

function duration(seconds) {
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

function add(parent, tag, name = "", text = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function shape(parent, tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  parent.appendChild(made);
  return made;
}
