// The page: a view for each address behind the #, and a stream for the view that is shown.

import { h } from "./dom.js";
import { follow } from "./stream.js";

const VIEWS = [
  ["", "Rings", "overview", () => import("./overview.js")],
  ["topics", "Topics", "topics", () => import("./topics.js")],
  ["dht", "Hash table", "dht", () => import("./dht.js")],
  ["time", "Time", "time", () => import("./clocks.js")],
  ["discovery", "Discovery", "discovery", () => import("./discovery.js")],
  ["colonies", "Colonies", "colonies", () => import("./colonies.js")],
  ["events", "Events", "events", () => import("./events.js")],
];

const main = document.getElementById("view");
const nav = document.getElementById("nav");
for (const [path, title] of VIEWS) nav.append(h("a", { href: `#/${path}`, "data-path": path }, title));

const session = fetch("/session").then((answer) => (answer.ok ? answer.json() : {}), () => ({}));
let end = () => {};
let turn = 0;

async function show() {
  const mine = ++turn;
  end();
  end = () => {};
  const words = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const isNode = words[0] === "node" && words.length > 2;
  const found = VIEWS.find(([path]) => path === words[0]) ?? VIEWS[0];
  for (const link of nav.children) {
    if (!isNode && link.dataset.path === found[0]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const [module, allowed] = await Promise.all([isNode ? import("./node.js") : found[3](), isNode ? session : {}]);
  if (mine !== turn) return;
  const stream = isNode ? `node/${encodeURIComponent(words[1])}/${encodeURIComponent(words[2])}` : found[2];
  document.title = isNode ? `${words[2]} · overlay` : `${found[1]} · overlay`;
  const view = module.view({ overlay: words[1], name: words[2], session: allowed });
  main.replaceChildren(view.element);
  window.scrollTo(0, 0);
  const stop = follow(stream, (model) => {
    view.update(model);
    document.body.dataset.painted = stream;
  });
  end = () => { stop(); view.end?.(); delete document.body.dataset.painted; };
}

addEventListener("hashchange", show);
show();
