// The page of all papers: what each one says, and what was found here.
"use strict";

function paper(one) {
  const verdict = (word) => make("td", { class: word === "differs" ? "trouble" : word === "agrees" ? "" : "zero" }, word);
  const agreed = one.rows.filter((row) => row[5] === "agrees").length;
  return make("section", { id: one.name },
    make("h2", {}, one.title),
    make("p", { class: "says" }, `${agreed} of ${one.rows.length} published figures are found again.`),
    make("div", { class: "scroll" }, make("table", {},
      make("thead", {}, make("tr", {}, ...["figure", "what", "published", "ours", "", "why"].map((word, place) =>
        make("th", { class: place === 3 ? "n" : null }, word)))),
      make("tbody", {}, ...one.rows.map(([figure, what, told, ours, unit, word, note]) => make("tr", {},
        make("td", {}, figure), make("td", { class: "wide" }, what), make("td", {}, told),
        make("td", { class: "n" }, ours === null ? "–" : `${+ours.toPrecision(4)} ${unit}`),
        verdict(word), make("td", { class: "wide" }, note)))))));
}

document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
main.replaceChildren(...DATA.papers.map(paper));
document.getElementById("sections").replaceChildren(...DATA.papers.map((one) =>
  make("a", { href: "#" + one.name }, one.name)));
