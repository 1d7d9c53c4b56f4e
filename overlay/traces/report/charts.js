// Charts in the colours of the page; drawn again when these change.
"use strict";
const drawn = new Map();
const resized = new ResizeObserver((entries) => entries.forEach((entry) => {
  // Not Plots.resize: it would take the height from the frame, too.
  if (entry.target.dataset.ready === "yes") Plotly.relayout(entry.target, { width: entry.contentRect.width });
}));

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function series(place) {
  return colour("c" + (place % 8));
}

function layout(more) {
  const axis = { gridcolor: colour("line"), zerolinecolor: colour("line"), linecolor: colour("line"),
    automargin: true, title: { standoff: 8 } };
  const base = {
    font: { family: "system-ui, sans-serif", size: 12, color: colour("soft") },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 58, r: 18, t: 14, b: 44 }, height: 300, hovermode: "x unified",
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("ink") } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, font: { color: colour("ink") } },
  };
  const merged = { ...base, ...more };
  for (const name of ["xaxis", "yaxis", "yaxis2"]) {
    if (more[name] || name !== "yaxis2") {
      merged[name] = { ...axis, ...(more[name] || {}) };
      if (typeof merged[name].title === "string") {
        merged[name].title = { text: merged[name].title, standoff: 8 };
      }
    }
  }
  return merged;
}

// build() returns [traces, layout]; the element is redrawn with other colours by calling it again.
function chart(id, build, describe) {
  const element = make("div", { class: "chart", id: "chart-" + id, role: "img", "aria-label": describe });
  drawn.set(element, build);
  resized.observe(element);
  return element;
}

// A legend of several rows must not be taken from the height of the plot.
const LEGEND_ROW = 19, LETTER = 7, SYMBOL = 46;

function legendRows(traces, whole, width) {
  if (whole.showlegend === false || traces.length < 2) return 0;
  const longest = Math.max(...traces.map((one) => (one.name || "").length));  // all columns are alike
  const columns = Math.max(1, Math.floor((width - 76) / (LETTER * longest + SYMBOL)));
  return Math.ceil(traces.length / columns);
}

async function drawAll() {
  for (const [element, build] of drawn) {
    if (!element.isConnected) { drawn.delete(element); continue; }
    const [traces, more] = build();
    const whole = layout(more);
    whole.height += LEGEND_ROW * Math.max(0, legendRows(traces, whole, element.clientWidth) - 1);
    await Plotly.react(element, traces, whole, { displayModeBar: false, responsive: true });
    element.dataset.ready = "yes";
    if (element.dataset.clicks !== "yes" && element.on) {
      element.dataset.clicks = "yes";
      element.on("plotly_click", (event) => {
        const name = event.points[0].customdata;
        if (typeof name === "string") location.hash = "node=" + encodeURIComponent(name);
      });
    }
  }
  document.documentElement.dataset.drawn = theRun;
}

function line(name, x, y, place, more = {}) {
  return { type: "scatter", mode: "lines", name, x, y, line: { width: 2, color: series(place) }, ...more };
}

function heatScale() {
  return [[0, colour("heat0")], [0.35, colour("heat1")], [0.75, colour("heat2")], [1, colour("heat3")]];
}
