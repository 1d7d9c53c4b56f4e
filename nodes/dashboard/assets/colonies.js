// Colonies as a tree: brokers, and the individuals that they lead.

import { card, h, nodeLink, tag, tiles } from "./dom.js";
import { count, some } from "./format.js";

export function view() {
  const top = tiles({ brokers: "brokers", individuals: "individuals", offers: "services offered", requests: "requests", silent: "silent individuals" });
  const body = h("div", { class: "body" });
  const box = card("Tree", body);
  let said = "";
  return {
    element: h("div", {}, h("h1", {}, "Colonies"), top.element, box.element),
    update(model) {
      const nodes = model.nodes;
      const all = Object.values(nodes);
      const sum = (field) => all.reduce((total, one) => total + one.counts[field], 0);
      const following = new Set(all.flatMap((one) => one.individuals.map((individual) => individual.name)));
      top.set("brokers", count(all.filter((one) => one.leads).length));
      top.set("individuals", count(following.size));
      top.set("offers", count(all.reduce((total, one) => total + one.offers.length, 0)));
      top.set("requests", count(sum("requests")));
      top.set("silent", count(sum("silent")), sum("silent") ? "warn" : "");
      const shape = JSON.stringify(all.map((one) => [one.node, one.leads, one.leader, one.offers.length, one.services.length, one.individuals, one.counts.requests]));
      if (shape === said) return;
      said = shape;
      const roots = all.filter((one) => one.leads && !one.leader);
      const alone = all.filter((one) => !one.leads && !one.leader && !following.has(one.node));
      const strays = all.filter((one) => one.leader && !(one.leader in nodes));
      const drawn = new Set();
      const branch = (name) => {
        const one = nodes[name];
        const again = drawn.has(name);
        drawn.add(name);
        const below = again || !one ? [] : one.individuals.map((individual) => branch(individual.name));
        return h("li", { "data-unit": name }, h("span", { class: "unit" }, one ? nodeLink(one.overlay, name) : name), one?.leads ? tag("broker", "gold") : tag("computer"),
          one?.offers.length ? tag(`offers ${count(one.offers.length)}`) : "", one?.leads ? tag(`colony offers ${count(one.services.length)}`) : "",
          one?.counts.requests ? tag(some(one.counts.requests, "request")) : "", below.length ? h("ul", {}, below) : "");
      };
      const trees = [...roots.map((one) => branch(one.node)),
        ...strays.map((one) => h("li", {}, h("span", { class: "unit" }, one.leader), tag("elsewhere"), h("ul", {}, branch(one.node))))];
      body.replaceChildren(trees.length ? h("ul", { class: "tree" }, trees) : h("div", { class: "soft" }, "Nobody leads a colony: overlay colony join --lead begins one."),
        alone.length ? h("p", { class: "soft" }, `${some(alone.length, "node")} of this machine follow nobody.`) : "");
      box.note.textContent = roots.length ? some(roots.length, "root") : "";
    },
  };
}
