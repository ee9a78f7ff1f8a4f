// Draws plots as SVG, at the width that they have on the page. Every text becomes a text node.
// A plot is {title, total (seconds), series, …}; the same figures stand in a table behind each. says: what a place on the
// axis is called, where it counts other things than seconds.

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 180, LEFT = 52, RIGHT = 8, TOP = 8, BOTTOM = 26;

function shape(name, attributes, says) {
  const found = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  if (says) found.append(Object.assign(document.createElementNS(SVG, "title"), {textContent: says}));
  return found;
}

function element(name, properties = {}, ...children) {
  const found = Object.assign(document.createElement(name), properties);
  found.append(...children);
  return found;
}

function nice(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= least * 0.999999);
}

const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

function niceTime(least) {
  if (least < 1) return nice(least);
  return TIMES.find(step => step >= least) ?? 86400 * nice(least / 86400);
}

function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${+seconds.toFixed(1)} s`;
  const [unit, whole] = seconds < 3600 ? ["min", 60] : seconds < 86400 ? ["h", 3600] : ["d", 86400];
  return `${+(seconds / whole).toFixed(1)} ${unit}`;
}

function number(value) {
  return value.toLocaleString("en", {maximumFractionDigits: value < 10 ? 2 : 0});
}

// What is common to all: axes, and the moments at which the run was resumed.
function frame(width, plot) {
  const svg = shape("svg", {viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": plot.title});
  const area = {
    svg,
    x: seconds => LEFT + (width - LEFT - RIGHT) * Math.min(1, seconds / plot.total),
    y: value => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / plot.top),
  };
  for (const [value, words] of plot.ticks) {
    const y = area.y(value);
    svg.append(shape("line", {class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y}));
    const text = shape("text", {x: LEFT - 6, y: y + 4, "text-anchor": "end"});
    text.textContent = words;
    svg.append(text);
  }
  const least = plot.total / Math.max(2, width / 110), step = plot.says ? Math.max(1, Math.ceil(least)) : niceTime(least);
  for (let at = 0; at <= (plot.says ? plot.total - 1 : plot.total * 1.0001); at += step) {
    const x = area.x(at), anchor = at === 0 ? "start" : x > width - 30 ? "end" : "middle";
    const text = shape("text", {x, y: HEIGHT - 8, "text-anchor": anchor});
    text.textContent = plot.says ? plot.says(at) : at === 0 ? "0" : duration(at);
    svg.append(text);
  }
  for (const at of plot.breaks) {
    svg.append(shape("line", {class: "resumed", x1: area.x(at), x2: area.x(at), y1: TOP, y2: HEIGHT - BOTTOM}, "resumed"));
  }
  return area;
}

function linear(most, unit) {
  const step = nice(Math.max(most, 1e-9) / 5), ticks = [];
  for (let value = 0; value < most + step; value += step) ticks.push([value, number(value)]);
  ticks.at(-1)[1] += unit;
  return {ticks, top: ticks.at(-1)[0]};
}

// Columns on top of each other. series: [{name, className, values}], one value for each of `edges` but the last.
function stacked(width, plot) {
  const area = frame(width, plot);
  plot.edges.slice(1).forEach((end, place) => {
    const start = plot.edges[place], x = area.x(start), wide = Math.max(0.6, area.x(end) - x - 0.4);
    let sum = 0;
    for (const series of plot.series) {
      const value = series.values[place];
      if (!value) continue;
      const y = area.y(sum + value), says = `${number(value)}${plot.unit} ${series.name} at ${plot.says ? plot.says(start) : duration(start)}`;
      area.svg.append(shape("rect", {class: series.className, x, y, width: wide, height: Math.max(0.5, area.y(sum) - y)}, says));
      sum += value;
    }
  });
  return area.svg;
}

// Lines; a value that is null leaves a gap. marks: moments of a vertical line, such as resets.
function lines(width, plot) {
  const area = frame(width, plot);
  for (const at of plot.marks ?? []) {
    area.svg.append(shape("line", {class: "reset", x1: area.x(at), x2: area.x(at), y1: TOP, y2: HEIGHT - BOTTOM}, `reset at ${duration(at)}`));
  }
  for (const series of plot.series) {
    let path = "", isDrawing = false;
    series.values.forEach((value, place) => {
      if (value !== null) path += `${isDrawing ? "L" : "M"}${area.x(plot.points[place]).toFixed(1)} ${area.y(value).toFixed(1)}`;
      isDrawing = value !== null;
    });
    area.svg.append(shape("path", {class: `line ${series.className}`, d: path}, series.name));
  }
  return area.svg;
}

// A heat map. rows: names from below; cells: for each point the counts of the rows, or nothing.
function heat(width, plot) {
  const area = frame(width, plot), most = Math.max(1, ...plot.cells.flat());
  plot.cells.forEach((counts, place) => {
    const start = place ? plot.points[place - 1] : 0, x = area.x(start);
    const wide = Math.max(0.6, area.x(plot.points[place]) - x);
    counts.forEach((count, row) => {
      if (!count) return;
      const says = `${number(count)} answers ${plot.rows[row]} at ${duration(start)}`;
      const opacity = (0.15 + 0.85 * Math.sqrt(count / most)).toFixed(2);
      const where = {x, y: area.y(row + 1), width: wide, height: area.y(row) - area.y(row + 1)};
      area.svg.append(shape("rect", {class: "heat", "fill-opacity": opacity, ...where}, says));
    });
  });
  return area.svg;
}

// A table of at most so many rows, made when it is opened.
function table(heads, rows) {
  const line = (cells, name) => element("tr", {}, ...cells.map(cell => {
    const found = element(name, {className: "r", textContent: cell});
    if (name === "th") found.scope = "col";
    return found;
  }));
  const made = element("table", {}, element("thead", {}, line(heads, "th")), element("tbody", {}, ...rows.map(row => line(row, "td"))));
  const scroll = element("div", {className: "scroll low", tabIndex: 0}, made);
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Figures of the plot");
  return scroll;
}

// A figure; `redraw` of it shows newer figures of the same plot.
function figure(plot) {
  const legend = element("div", {className: "legend"}), canvas = element("div", {className: "canvas"});
  const details = element("details", {}, element("summary", {textContent: `Figures: ${plot.title}`}));
  const found = element("figure", {}, element("figcaption", {textContent: plot.title}), legend, canvas, details);
  let drawn = 0;
  function tabulate() {
    if (details.open) details.replaceChildren(details.firstChild, table(plot.heads, plot.figures()));
  }
  function draw() {
    const width = Math.round(canvas.clientWidth);
    if (!width || width === drawn) return;
    drawn = width;
    canvas.replaceChildren(plot.draw(width, plot));
  }
  found.redraw = fresh => {
    plot = fresh;
    drawn = 0;
    legend.replaceChildren(...(plot.legend ?? []).map(([name, className]) =>
      element("span", {}, element("i", {className: `dot ${className}`}), name)));
    tabulate();
    draw();
  };
  found.redraw(plot);
  details.addEventListener("toggle", tabulate);
  new ResizeObserver(draw).observe(canvas);
  return found;
}
