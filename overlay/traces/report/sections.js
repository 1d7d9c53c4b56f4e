// The sections of the page, in order; one without anything to show is left out.
"use strict";
let latencyBy = "topic";
const HALF = 300;  // px of a chart that shares its row

function section(id, title, says, ...children) {
  const kept = children.filter((child) => child);
  if (!kept.length) return null;
  return make("section", { id }, make("h2", {}, title), make("p", { class: "says" }, says), ...kept);
}

function titled(title, ...children) {
  return make("div", {}, make("h3", {}, title), ...children);
}

function overview() {
  const topics = rowsOf("delivery_topics");
  const all = rowsOf("latency").find((row) => row.by === "all");
  const lost = total(topics, "lost"), again = total(topics, "duplicated");
  const wrong = total(rowsOf("membership_mistakes"), "removed_wrongly");
  const noticed = rowsOf("membership").filter((row) => row.what === "crashed" || row.what === "silent");
  const odd = rowsOf("anomalies");
  const facts = [
    [count(run().nodes), `nodes in ${run().zones.length || 1} zone${run().zones.length > 1 ? "s" : ""}`, "load"],
    [seconds((run().end - run().begin) / 1e6), "from first to last row", "time"],
  ];
  if (topics.length) {
    facts.push([short(total(topics, "published")), "messages published", "delivery"],
      [short(total(topics, "delivered")), "delivered", "delivery"],
      [count(lost), "lost", "delivery", lost ? "bad" : "good"],
      [count(again), "duplicated", "delivery", again ? "bad" : "good"]);
  }
  if (all) {
    facts.push([micros(all.p50), "latency, median", "latency"], [micros(all.p99), "latency, p99", "latency"]);
  }
  const operations = rowsOf("dht");
  if (operations.length) facts.push([short(total(operations, "count")), "operations on the table", "dht"]);
  if (noticed.length) {
    facts.push([seconds(Math.max(...noticed.map((row) => row.last))), "until all saw a death", "membership"]);
  }
  if (DATA.tables.membership_mistakes) {
    facts.push([count(wrong), "living nodes removed", "membership", wrong ? "bad" : "good"]);
  }
  if (DATA.tables.anomalies) facts.push([count(odd.length), "out of line", "anomalies", odd.length ? "bad" : "good"]);
  const skipped = DATA.files.skipped;
  const clocks = rowsOf("nodes"), unsure = clocks.filter((row) => row.clock_error === null).length;
  return make("section", { id: "overview" },
    make("div", { class: "cards" }, ...facts.map(([value, name, link, mood]) =>
      make("a", { class: "fact " + (mood || ""), href: "#" + link }, make("b", {}, value), make("span", {}, name)))),
    skipped.length ? make("div", { class: "notice" },
      `${count(skipped.length)} file${skipped.length > 1 ? "s were" : " was"} left out:`,
      make("ul", {}, ...skipped.map(([file, why]) => make("li", {}, make("code", {}, file), ": " + why)))) : null,
    unsure ? make("p", { class: "says" }, `${count(unsure)} of ${count(clocks.length)} lives had no overlay time: ` +
      "what they say is compared with others as their own clocks tell it.") : null);
}

function overTime() {
  const time = DATA.time[theRun];
  if (!time) return null;
  const deaths = () => time.deaths.map(([at, node]) => ({ type: "line", x0: at, x1: at, yref: "paper",
    y0: 0, y1: 1, line: { color: colour("bad"), width: 1, dash: "dot" } }));
  const named = () => time.deaths.slice(0, 8).map(([at, node, how]) => ({ x: at, y: 1, yref: "paper",
    text: `${node} ${how}`, showarrow: false, yanchor: "bottom", font: { size: 10, color: colour("bad") } }));
  const hasTopics = time.published.some(Boolean) || time.delivered.some(Boolean);
  const hasBytes = time.sent_bytes.some(Boolean);
  return section("time", "The overlay over time",
    "How many nodes lived, and what they said to each other. A dotted line is a node that died without a goodbye.",
    hasTopics ? titled("Messages of topics", chart("messages", () => [[
      line("published", time.seconds, time.published, 0, { hovertemplate: "%{y:.3s}/s" }),
      line("delivered", time.seconds, time.delivered, 1, { hovertemplate: "%{y:.3s}/s" }),
    ], { shapes: deaths(), annotations: named(), margin: { l: 58, r: 18, t: 40, b: 44 },
      xaxis: { title: "seconds" }, yaxis: { title: "messages/s", rangemode: "tozero" } }],
    "messages published and delivered per second")) : null,
    make("div", { class: "two" },
      titled("Living nodes", chart("alive", () => [[
        line("nodes", time.alive.map((one) => one[0]), time.alive.map((one) => one[1]), 2,
          { line: { shape: "hv", width: 2, color: series(2) }, fill: "tozeroy", hovertemplate: "%{y}" }),
      ], { height: HALF, showlegend: false, shapes: deaths(), xaxis: { title: "seconds" },
        yaxis: { title: "nodes", rangemode: "tozero" } }], "living nodes over time")),
      hasBytes ? titled("Bytes on the wire", chart("bytes", () => [[
        line("sent", time.seconds, time.sent_bytes, 0, { hovertemplate: "%{y:.3s}B/s" }),
        line("received", time.seconds, time.received_bytes, 1, { hovertemplate: "%{y:.3s}B/s" }),
      ], { height: HALF, xaxis: { title: "seconds" }, yaxis: { title: "B/s", rangemode: "tozero" } }],
      "bytes sent and received per second")) : null));
}

function delivery() {
  const topics = rowsOf("delivery_topics"), flows = rowsOf("delivery");
  const troubled = flows.filter((row) => row.lost || row.duplicated || row.out_of_order || row.outstanding);
  const bad = { trouble: true };
  const counts = [["expected", "expected", count], ["delivered", "delivered", count],
    ["lost", "lost", count, bad], ["told", "told", count], ["duplicated", "duplicated", count, bad],
    ["out_of_order", "out of order", count, bad], ["outstanding", "outstanding", count]];
  return section("delivery", "Delivery",
    "Published against delivered. A message is lost when later ones of its stream came and it did not; " +
    "outstanding ones lie behind the last that came.",
    topics.length ? titled("By topic", table("delivery_topics", [["topic", "topic"], ["publishers", "publishers"],
      ["subscribers", "subscribers"], ["published", "published", count], ...counts])) : null,
    troubled.length ? titled("Streams with trouble", table("delivery", [["topic", "topic"],
      ["origin", "publisher", nodeLink], ["node", "subscriber", nodeLink], ["zone", "zone"], ...counts], troubled)) : null);
}

function latency() {
  const rows = rowsOf("latency");
  if (!rows.length) return null;
  const views = ["topic", "zones", "hops"].filter((by) => rows.some((row) => row.by === by));
  const buttons = make("div", { class: "buttons" }, ...views.map((by) => make("button", {
    "aria-pressed": String(by === latencyBy), onclick: () => { latencyBy = by; show(); location.hash = "latency"; },
  }, "by " + by)));
  const points = rowsOf("latency_cdf").filter((row) => row.by === latencyBy);
  const groups = [...new Set(points.map((row) => row.group))].slice(0, 16);
  const build = () => [groups.map((group, place) => {
    const own = points.filter((row) => row.group === group);
    return line(group, own.map((row) => Math.max(row.value, 1) / 1000), own.map((row) => 100 * row.share), place,
      { line: { shape: "hv", width: 2, color: series(place), dash: place < 8 ? "solid" : "dot" },
        hovertemplate: "%{y:.1f} % within %{x:.3~s} ms" });
  }), { height: 380, hovermode: "closest", xaxis: { title: "ms, one way", type: "log", range: sharpRange(groups) },
    yaxis: { title: "% of messages", range: [0, 101] } }];
  return section("latency", "Latency",
    "From publishing to delivery, one way. Clocks are compared by the time service: a latency means " +
    "little where it is not larger than the clock error beside it.",
    buttons, chart("latency", build, "distribution of latencies"),
    table("latency", [["by", "by"], ["group", "group"], ["count", "messages", count], ["p50", "p50", micros],
      ["p90", "p90", micros], ["p99", "p99", micros], ["p999", "p99.9", micros], ["most", "longest", micros],
      ["clock_error", "clock error ±", micros], ["impossible", "impossible", count, { trouble: true }]],
    rows.filter((row) => row.by === latencyBy || row.by === "all")));
}

// To p99.9 and a bit: one straggler of seconds would squeeze all others into the margin.
function sharpRange(groups) {
  const own = rowsOf("latency").filter((row) => row.by === latencyBy && groups.includes(row.group));
  const least = Math.min(...own.map((row) => Math.max(row.least, 1)));
  const most = Math.max(...own.map((row) => Math.max(row.p999, 10)));
  return [Math.log10(least / 1000) - 0.1, Math.log10(most / 1000) + 0.3];
}

function membership() {
  const noticed = rowsOf("membership").sort((a, b) => (a.what === "joined") - (b.what === "joined"));
  const views = rowsOf("membership_views"), mistakes = rowsOf("membership_mistakes");
  const scopes = [...new Set(views.map((row) => row.scope))];
  const curve = (column, factor) => scopes.map((scope, place) => {
    const own = views.filter((row) => row.scope === scope);
    return line(scope || "node", own.map((row) => (row.at - run().begin) / 1e6),
      own.map((row) => factor * row[column]), place, { line: { shape: "hv", width: 2, color: series(place) } });
  });
  const suspected = mistakes.filter((row) => row.suspected || row.removed);
  return section("membership", "Membership",
    "How views converge: the share of a zone's members that hold its most common view, and how long it " +
    "took until others noticed who came and who died.",
    scopes.length ? make("div", { class: "two" },
      titled("Agreement", chart("agreement", () => [curve("agreement", 100), { height: HALF,
        xaxis: { title: "seconds" }, yaxis: { title: "% with the same view", range: [0, 103] } }], "agreement of views")),
      titled("Size of views", chart("sizes", () => [curve("size", 1), { height: HALF,
        xaxis: { title: "seconds" }, yaxis: { title: "members", rangemode: "tozero" } }], "mean size of views"))) : null,
    noticed.length ? titled("Noticed by the others", table("membership", [["what", "what"], ["node", "node", nodeLink],
      ["scope", "zone"], ["since", "at", since], ["observers", "observers"], ["first", "first after", seconds],
      ["median", "median", seconds], ["last", "last", seconds]], noticed)) : null,
    suspected.length ? titled("Suspicions", table("membership_mistakes", [["node", "node", nodeLink], ["scope", "zone"],
      ["suspected", "suspected"], ["suspected_wrongly", "wrongly", count, { trouble: true }], ["refuted", "refuted"],
      ["removed", "removed"], ["removed_wrongly", "wrongly", count, { trouble: true }]], suspected)) : null);
}

function load() {
  const heat = DATA.heat[theRun], types = rowsOf("traffic_types");
  const build = () => [[{ type: "heatmap", x: heat.seconds, y: heat.nodes.map(([name]) => name), z: heat.rates,
    customdata: heat.nodes.map(([name]) => heat.seconds.map(() => name)), colorscale: heatScale(),
    colorbar: { title: { text: heat.unit, font: { color: colour("soft") } }, thickness: 10, outlinewidth: 0,
      tickfont: { color: colour("soft") }, exponentformat: "SI" },
    hovertemplate: "%{y} at %{x:.1f} s: %{z:.3s}" + heat.unit + "<extra></extra>" }],
  { height: Math.max(220, 70 + 17 * heat.nodes.length), hovermode: "closest", margin: { l: 70, r: 10, t: 14, b: 44 },
    xaxis: { title: "seconds", showgrid: false },
    yaxis: { type: "category", autorange: "reversed", showgrid: false,
      dtick: heat.nodes.length > 40 ? 2 : 1 } }];
  const shown = heat && heat.nodes.length;
  const side = [["sent", "sent", count], ["sent_bytes", "bytes", bytes], ["received", "received", count],
    ["received_bytes", "bytes", bytes], ["dropped", "dropped", count, { trouble: true }],
    ["refused", "refused", count, { trouble: true }]];
  return section("load", "Load",
    "What each node carried, over time, in the order of zones" +
    (shown && heat.nodes.length < heat.of ? ` (the ${heat.nodes.length} busiest of ${heat.of})` : "") +
    ". A click on a node shows all that is known of it.",
    shown ? chart("load", build, "load of nodes over time") : null,
    rowsOf("traffic").length ? titled("By node", table("traffic", [["node", "node", nodeLink], ["zone", "zone"],
      ...side, ["load", "load, mean = 1", (value) => value === null ? "–" : value.toFixed(2)]])) : null,
    types.length ? titled("By type of message", table("traffic_types", [["protocol", "protocol"],
      ["message", "message"], ...side])) : null,
    rowsOf("traffic_links").length ? titled("By link", table("traffic_links", [["source", "from", nodeLink],
      ["target", "to", nodeLink], ["sent", "sent", count], ["sent_bytes", "bytes", bytes],
      ["received", "received", count], ["received_bytes", "bytes", bytes]])) : null);
}

function paths() {
  const worst = rowsOf("paths"), hops = rowsOf("paths_hops").filter((row) => row.hops !== null);
  const topics = [...new Set(hops.map((row) => row.topic))].slice(0, 16);
  return section("paths", "Paths",
    "The slowest deliveries, with the way that each message went, and the leg on which it lost most of its time.",
    worst.length ? titled("Worst paths", table("paths", [["place", "#"], ["latency", "latency", micros],
      ["topic", "topic"], ["path", "path", nodePath, { wide: true }],
      ["slowest_leg", "slowest leg", micros],
      ["slowest_from", "of it", (value, row) => value === null ? "–" : nodePath(`${value} → ${row.slowest_to}`)],
      ["at", "at", since], ["number", "message", count]])) : null,
    topics.length ? titled("Hops", chart("hops", () => [topics.map((topic, place) => {
      const own = hops.filter((row) => row.topic === topic);
      return { type: "bar", name: topic, x: own.map((row) => row.hops), y: own.map((row) => 100 * row.share),
        marker: { color: series(place) }, hovertemplate: "%{y:.1f} %" };
    }), { height: 280, barmode: "group", xaxis: { title: "hops", dtick: 1 }, yaxis: { title: "% of messages" } }],
    "hops by topic")) : null,
    rowsOf("paths_trees").length ? titled("Trees", table("paths_trees", [["topic", "topic"],
      ["origin", "publisher", nodeLink], ["nodes", "nodes"], ["edges", "edges"], ["depth", "depth"],
      ["most_children", "most children"], ["busiest", "of", nodeLink], ["messages", "messages", count]])) : null);
}

const TIMES = [["count", "count", count], ["p50", "p50", micros], ["p90", "p90", micros], ["p99", "p99", micros],
  ["p999", "p99.9", micros], ["most", "longest", micros]];

function dht() {
  const operations = rowsOf("dht"), held = rowsOf("dht_balance");
  const nodes = [...new Set(held.map((row) => row.node))].sort();
  const height = Math.max(320, 90 + 19 * operations.length);
  // Points, not bars: on a logarithmic scale a bar has no foot.
  const points = (name, column, place) => ({ type: "scatter", mode: "markers", name, y: operations.map((row) => row.operation),
    x: operations.map((row) => row[column] / 1000), marker: { color: series(place), size: 9 },
    hovertemplate: "%{x:.3~s} ms" });
  return section("dht", "Distributed table", "How long operations took, who holds the keys, and how late replicas are.",
    operations.length || held.length ? make("div", { class: "two" },
      operations.length ? titled("Times of operations", chart("operations", () => [
        [points("p50", "p50", 0), points("p99", "p99", 1)],
        { height, hovermode: "closest",
          xaxis: { title: "ms", type: "log" }, yaxis: { type: "category", autorange: "reversed", dtick: 1 } }],
      "median and 99th percentile of each operation")) : null,
      held.length ? titled("Keys", chart("keys", () => [["owner", "replica", "lateral"].map((role, place) => {
        const own = new Map(held.filter((row) => row.role === role).map((row) => [row.node, row.keys]));
        return { type: "bar", name: role, x: nodes, y: nodes.map((node) => own.get(node) || 0), customdata: nodes,
          marker: { color: series(place) }, hovertemplate: "%{y}" };
      }), { height, barmode: "stack", yaxis: { title: "keys" } }], "keys of each node, by role")) : null) : null,
    rowsOf("dht").length ? titled("Operations", table("dht", [["operation", "operation"], ...TIMES,
      ["hops", "hops, mean", (value) => value === null ? "–" : value.toFixed(2)]])) : null,
    rowsOf("dht_balance").length ? titled("Balance", table("dht_balance", [["node", "node", nodeLink], ["zone", "zone"],
      ["role", "role"], ["keys", "keys", count], ["bytes", "bytes", bytes],
      ["ratio", "mean = 1", (value) => value === null ? "–" : value.toFixed(2)]])) : null,
    rowsOf("dht_lag").length ? titled("Replication lag", table("dht_lag", [["role", "role"], ...TIMES])) : null);
}

function discovery() {
  const share = (value) => value === null ? "–" : value.toFixed(1) + " %";
  return section("discovery", "Discovery of brokers", "How long it took to find the nearest broker, and where the time went.",
    rowsOf("discovery").length ? titled("Summary", table("discovery", [["zone", "zone"], ["requests", "requests"],
      ["found", "found"], ["responses", "responses", (value) => value === null ? "–" : value.toFixed(1)],
      ["mean", "mean", millis], ["deviation", "deviation", millis], ["p50", "p50", millis], ["p99", "p99", millis],
      ["waiting_share", "waiting", share], ["choosing_share", "choosing", share], ["pinging_share", "pinging", share]])) : null,
    rowsOf("discovery_requests").length ? titled("Requests", table("discovery_requests", [["node", "node", nodeLink],
      ["began", "at", since], ["broker", "broker", nodeLink], ["total", "total", millis], ["waiting", "waiting", millis],
      ["choosing", "choosing", millis], ["pinging", "pinging", millis], ["round_trip", "round trip", millis],
      ["responses", "responses"], ["failure", "failure"]])) : null);
}

function resources() {
  const some = (value) => value === null ? "–" : value.toFixed(1);
  return section("resources", "Discovery of resources", "How long requests for resources took, and what they cost the brokers.",
    rowsOf("resources").length ? titled("Summary", table("resources", [["zone", "zone"], ["requests", "requests"],
      ["complete", "complete"], ["shared", "shared results"], ["found", "found, mean", some], ["mean", "mean", millis],
      ["p50", "p50", millis], ["p99", "p99", millis], ["hops", "hops", some],
      ["request_messages", "messages: requests", some], ["result_messages", "results", some]])) : null,
    rowsOf("resource_requests").length ? titled("Requests", table("resource_requests", [["node", "node", nodeLink],
      ["began", "at", since], ["forwarding", "forwarding"], ["total", "total", millis], ["found", "found"], ["end", "end"],
      ["hops", "hops"], ["request_messages", "messages: requests"], ["result_messages", "results"]])) : null);
}

function colony() {
  const number = (value) => value === null ? "–" : value.toFixed(2);
  const share = (value) => value === null ? "–" : value.toFixed(1) + " %";
  if (!rowsOf("colony").length) return null;
  return section("colony", "Colonies", "Requests for services: how many were served, and how many brokers that took.",
    titled("Summary", table("colony", [["requests", "requests"], ["wants", "wants"], ["served", "served", share],
      ["timed_out", "timed out"], ["hops", "hops, mean", number], ["brokers", "brokers, mean", number],
      ["mean", "mean", millis], ["p50", "p50", millis], ["p99", "p99", millis]])),
    rowsOf("colony_load").length ? titled("Load", table("colony_load", [["node", "broker", nodeLink],
      ["requests", "requests", count], ["load", "of all", share]])) : null);
}

function mobility() {
  const time = (value) => value === null ? "–" : millis(value);
  if (!rowsOf("mobility_moves").length) return null;
  return section("mobility", "Moving clients", "How long their trees took to stand again, and what was lost meanwhile.",
    rowsOf("mobility").length ? titled("Summary", table("mobility", [["algorithm", "algorithm"], ["moves", "moves", count],
      ["clients", "clients"], ["away", "away, mean", time], ["rebuilt", "rebuilt, mean", time], ["p50", "p50", time],
      ["p99", "p99", time], ["incomplete", "incomplete"], ["published", "published", count],
      ["expected", "expected", count], ["delivered", "delivered", count], ["lost", "lost", count]])) : null,
    titled("Moves", table("mobility_moves", [["node", "client", nodeLink], ["at", "at", since],
      ["previous", "from", nodeLink], ["broker", "to", nodeLink], ["algorithm", "algorithm"], ["away", "away", time],
      ["rebuilt", "rebuilt", time], ["held", "held"], ["published", "published"], ["expected", "expected"],
      ["lost", "lost"]])));
}

function anomalies() {
  if (!DATA.tables.anomalies) return null;
  const rows = rowsOf("anomalies");
  return section("anomalies", "Out of line",
    "Nodes and links far from the median of all others, in units of the median deviation.",
    rows.length ? table("anomalies", [["subject", "node or link", nodePath], ["measure", "measure"],
      ["value", "value", short], ["median", "median", short], ["score", "score", short]])
      : make("p", {}, "Nothing: all nodes and links are alike."));
}

function ending() {
  const files = DATA.files;
  const facts = Object.entries(DATA.facts).map(([name, value]) => `${name} ${value}`).join(" · ");
  return make("footer", {}, `${count(files.rows)} rows in ${count(files.files)} files (${bytes(files.bytes)}` +
    (files.newer ? `; ${count(files.newer)} of a later version` : "") + `). ${facts}`);
}

// -- a node's card ---------------------------------------------------------------------------------

function card(name) {
  const element = document.getElementById("card");
  marked = name;
  markRows();
  const facts = [];
  const add = (term, value) => facts.push(make("dt", {}, term), make("dd", {}, value));
  for (const life of rowsOf("nodes").filter((row) => row.node === name)) {
    add("life", `${since(life.born)} to ${since(life.died)}, ${life.ended}`);
    add("zone", life.zone || "–");
    add("clock error ±", micros(life.clock_error));
  }
  for (const row of rowsOf("traffic").filter((one) => one.node === name)) {
    add("sent, received", `${bytes(row.sent_bytes)}, ${bytes(row.received_bytes)}`);
    add("load", `${row.load === null ? "–" : row.load.toFixed(2)} × the mean`);
  }
  for (const row of rowsOf("delivery").filter((one) => one.node === name).slice(0, 6)) {
    add(row.topic, `${count(row.delivered)} delivered, ${count(row.lost)} lost`);
  }
  for (const row of rowsOf("membership").filter((one) => one.node === name)) {
    add(row.what, `seen after ${seconds(row.first)} to ${seconds(row.last)}`);
  }
  for (const row of rowsOf("anomalies").filter((one) => one.subject.split(" → ").includes(name)).slice(0, 6)) {
    add("out of line", `${row.subject}: ${row.measure} ${short(row.value)}`);
  }
  element.hidden = facts.length === 0;
  element.replaceChildren(
    make("button", { onclick: () => { history.replaceState(null, "", "#load"); card(""); } }, "close"),
    make("h2", {}, name), make("dl", {}, ...facts),
    make("p", { class: "more" }, "Its rows are marked in all tables: ",
      ...["delivery", "membership", "load", "paths", "anomalies"].filter((id) => document.getElementById(id))
        .flatMap((id) => [make("a", { href: "#" + id }, id), " "])));
}

function follow() {
  const found = /^#node=(.*)$/.exec(location.hash);
  if (found) card(decodeURIComponent(found[1]));
}

// Of a page that was opened at one of its sections: there was none when the browser looked for it.
function goToSection() {
  const found = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (found) found.scrollIntoView({ behavior: "instant" });
}

// -- the page --------------------------------------------------------------------------------------

function show() {
  const sections = [overview(), overTime(), delivery(), latency(), membership(), load(), paths(), dht(),
    discovery(), resources(), colony(), mobility(), anomalies()].filter(Boolean);
  main.replaceChildren(...sections, ending());
  document.getElementById("sections").replaceChildren(...sections.slice(1).map((one) =>
    make("a", { href: "#" + one.id }, one.querySelector("h2").textContent)));
  markRows();
  return drawAll();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "light" : "dark";
  drawAll();
}

function controls() {
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const button = make("button", { id: "theme", title: "other colours",
    onclick: () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark") });
  const picker = make("select", { "aria-label": "run" }, ...DATA.runs.map((one) =>
    make("option", { value: one.name }, one.name)));
  picker.onchange = () => { theRun = picker.value; card(""); show(); };
  document.getElementById("controls").append(...(DATA.runs.length > 1 ? [picker, button] : [button]));
  wish.onchange = () => setTheme(wish.matches ? "dark" : "light");
  document.documentElement.dataset.theme = wish.matches ? "dark" : "light";
  button.textContent = wish.matches ? "light" : "dark";
}

controls();
show().then(goToSection);
follow();
addEventListener("hashchange", follow);
