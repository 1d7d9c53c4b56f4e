// Zones as rings on a canvas: members, delegates, gateways and links, moving as they change.

import { around, dotRadius, labelled, places } from "./layout.js";

const KINDS = ["ring", "structured", "random", "interest"];
const MOVE = 450; // ms
const FLASH = 1600;

export class Rings {
  constructor(canvas, { onhover, onpick }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.zones = [];
    this.drawn = new Map(); // key -> member with its place now, and where it goes
    this.hovered = null;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.frame = 0;
    this.onhover = onhover;
    this.redraw = () => { this.colours = null; this.place(); };
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.redraw);
    this.observer = new ResizeObserver(() => this.place());
    this.observer.observe(canvas);
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("click", (event) => { this.hover(event); if (this.hovered?.watched) onpick(this.hovered); });
  }

  end() {
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.redraw);
    cancelAnimationFrame(this.frame);
  }

  // zones: [{key, title, members: [{key, name, state, watched, delegate, gateway, silent, links, far}]}]
  show(zones) {
    this.zones = zones;
    this.place();
  }

  place() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const scale = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.sized = performance.now();
    }
    const now = performance.now();
    const jump = this.calm || !this.drawn.size || this.sized === undefined || now - this.sized < 50;
    const first = !this.drawn.size;
    this.spots = places(this.zones, width, height);
    const seen = new Set();
    this.zones.forEach((zone, i) => {
      const spot = this.spots[i];
      const size = dotRadius(zone, spot);
      for (const member of around(zone, spot)) {
        seen.add(member.key);
        const old = this.drawn.get(member.key);
        const from = old && !jump ? this.at(old, now) : { x: jump ? member.x : spot.x, y: jump ? member.y : spot.y };
        this.drawn.set(member.key, {
          ...member, zone: i, size, from, begun: now, jump,
          born: old && !old.dying ? old.born : first ? -FLASH : now,
        });
      }
    });
    for (const [key, member] of this.drawn) {
      if (seen.has(key)) continue;
      if (!member.dying) this.drawn.set(key, { ...member, dying: now, from: this.at(member, now), begun: now });
    }
    this.animate();
  }

  at(member, now) {
    const t = member.jump ? 1 : Math.min(1, (now - member.begun) / MOVE);
    const eased = 1 - (1 - t) ** 3;
    return { x: member.from.x + (member.x - member.from.x) * eased, y: member.from.y + (member.y - member.from.y) * eased };
  }

  animate() {
    cancelAnimationFrame(this.frame);
    const step = () => {
      const now = performance.now();
      let moving = false;
      for (const [key, one] of this.drawn) {
        if (one.dying && now - one.dying > FLASH) this.drawn.delete(key);
        else if (one.dying || now - one.born < FLASH || now - one.begun < MOVE) moving = true;
      }
      this.draw(now);
      if (moving && !this.calm) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  palette() {
    if (!this.colours) {
      const style = getComputedStyle(document.documentElement);
      const names = ["text", "soft", "faint", "accent", "good", "warn", "bad", "gold", "card", "line", ...KINDS, "far"];
      this.colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    }
    return this.colours;
  }

  draw(now) {
    const { context: c, canvas } = this;
    const scale = devicePixelRatio || 1;
    const colours = this.palette();
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, canvas.width, canvas.height);
    const spots = new Map([...this.drawn].map(([key, one]) => [key, this.at(one, now)]));
    this.spotsNow = spots;
    this.zones.forEach((zone, i) => this.drawZone(c, zone, this.spots[i], colours));
    this.drawLinks(c, spots, colours);
    for (const [key, one] of this.drawn) this.drawMember(c, one, spots.get(key), now, colours);
    for (const draw of this.title ?? []) draw();
    this.title = [];
    this.zones.forEach((zone, i) => { if (labelled(zone)) this.drawNames(c, zone, this.spots[i], spots, colours); });
  }

  drawZone(c, zone, spot, colours) {
    c.beginPath();
    c.arc(spot.x, spot.y, spot.radius, 0, 2 * Math.PI);
    c.strokeStyle = colours.line;
    c.lineWidth = 1;
    c.stroke();
    const small = spot.cell < 190;
    const inside = spot.radius > 46 && !labelled(zone);
    const y = inside ? spot.y : spot.y - spot.radius - (labelled(zone) && spot.radius >= 44 ? 40 : 20);
    this.title = this.title ?? [];
    this.title.push(() => this.drawTitle(c, zone, spot.x, y, small, colours));
  }

  // The name of a zone, and how many are there, in one line that links do not strike out.
  drawTitle(c, zone, x, y, small, colours) {
    const bold = `600 ${small ? 11.5 : 14}px system-ui, "DejaVu Sans", sans-serif`;
    const plain = `${small ? 10.5 : 12.5}px system-ui, "DejaVu Sans", sans-serif`;
    const note = small ? String(zone.members.length) : zone.note;
    c.textBaseline = "middle";
    c.textAlign = "left";
    c.font = bold;
    const first = c.measureText(zone.title).width;
    c.font = plain;
    const left = x - (first + 8 + c.measureText(note).width) / 2;
    c.lineJoin = "round";
    c.lineWidth = 5;
    c.strokeStyle = colours.card;
    c.strokeText(note, left + first + 8, y);
    c.fillStyle = colours.soft;
    c.fillText(note, left + first + 8, y);
    c.font = bold;
    c.strokeText(zone.title, left, y);
    c.fillStyle = colours.text;
    c.fillText(zone.title, left, y);
  }

  drawLinks(c, spots, colours) {
    const links = [...this.pairs()];
    const crowd = Math.max(0.05, Math.min(0.85, 60 / Math.sqrt(links.length + 1) / 8));
    const chosen = this.hovered?.key;
    for (const [a, b, kinds, far] of links) {
      const [p, q] = [spots.get(a), spots.get(b)];
      if (!p || !q) continue;
      const mine = chosen === a || chosen === b;
      const kind = far ? "far" : KINDS.find((one) => kinds.includes(one)) ?? "random";
      c.strokeStyle = colours[kind];
      const alpha = far ? 0.35 * crowd + 0.06 : kind === "ring" ? Math.max(crowd, links.length > 2000 ? 0.2 : 0.6) : crowd;
      c.globalAlpha = chosen ? (mine ? 1 : alpha / 4) : alpha;
      c.lineWidth = mine ? 2 : kind === "ring" ? 1.6 : 1.1;
      c.beginPath();
      c.moveTo(p.x, p.y);
      if (far) bow(c, p, q);
      else {
        const spot = this.spots[this.drawn.get(a).zone];
        const pull = kind === "ring" ? 0.04 : 0.35;
        const mid = { x: (p.x + q.x) / 2, y: (p.y + q.y) / 2 };
        if (spot) c.quadraticCurveTo(mid.x + (spot.x - mid.x) * pull, mid.y + (spot.y - mid.y) * pull, q.x, q.y);
        else c.lineTo(q.x, q.y);
      }
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  // Each pair once, whichever ends told of it.
  * pairs() {
    const seen = new Set();
    for (const zone of this.zones) {
      for (const one of zone.members) {
        for (const [peer, kinds] of Object.entries(one.links ?? {})) {
          const pair = one.key < peer ? `${one.key}\n${peer}` : `${peer}\n${one.key}`;
          if (seen.has(pair)) continue;
          seen.add(pair);
          yield [one.key, peer, kinds, false];
        }
        for (const peer of one.far ?? []) {
          const pair = one.key < peer ? `${one.key}\n${peer}` : `${peer}\n${one.key}`;
          if (seen.has(pair)) continue;
          seen.add(pair);
          yield [one.key, peer, "", true];
        }
      }
    }
  }

  drawMember(c, one, at, now, colours) {
    const age = now - one.born;
    const size = one.size * (this.hovered?.key === one.key ? 1.5 : 1);
    const colour = one.dying || one.state === "dead" ? colours.bad
      : one.state === "suspect" || one.silent ? colours.warn : colours.accent;
    c.globalAlpha = one.dying ? Math.max(0, 1 - (now - one.dying) / FLASH) : 1;
    if ((one.dying || age < FLASH) && !this.calm) {
      const t = one.dying ? (now - one.dying) / FLASH : age / FLASH;
      c.beginPath();
      c.arc(at.x, at.y, size + 14 * t, 0, 2 * Math.PI);
      c.strokeStyle = one.dying ? colours.bad : colours.good;
      c.globalAlpha = Math.max(0, 0.7 * (1 - t));
      c.lineWidth = 2;
      c.stroke();
      c.globalAlpha = one.dying ? Math.max(0, 1 - t) : 1;
    }
    c.beginPath();
    if (one.gateway) {
      const d = size * 1.25;
      c.moveTo(at.x, at.y - d); c.lineTo(at.x + d, at.y); c.lineTo(at.x, at.y + d); c.lineTo(at.x - d, at.y);
      c.closePath();
    } else c.arc(at.x, at.y, size, 0, 2 * Math.PI);
    c.fillStyle = one.watched ? colour : colours.card;
    c.fill();
    c.lineWidth = size > 3 ? 1.6 : 1;
    c.strokeStyle = one.watched ? colours.card : colour;
    c.stroke();
    if (one.delegate) {
      c.beginPath();
      c.arc(at.x, at.y, size + (size > 3 ? 3.6 : 2.2), 0, 2 * Math.PI);
      c.strokeStyle = colours.gold;
      c.lineWidth = size > 3 ? 2.2 : 1.5;
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  drawNames(c, zone, spot, spots, colours) {
    const gap = (2 * Math.PI * spot.radius) / Math.max(zone.members.length, 1);
    if (spot.radius < 44 || gap < 9) return;
    const font = Math.max(10, Math.min(12.5, gap * 0.8));
    c.font = `${font}px system-ui, "DejaVu Sans", sans-serif`;
    c.textBaseline = "middle";
    const room = Math.max(40, spot.names + 8);
    c.lineJoin = "round";
    c.lineWidth = 3.5;
    c.strokeStyle = colours.card;
    for (const member of zone.members) {
      const one = this.drawn.get(member.key);
      if (!one) continue;
      const out = one.size + 9;
      const left = Math.cos(one.angle) < -0.01;
      c.save();
      c.translate(spot.x + (spot.radius + out) * Math.cos(one.angle), spot.y + (spot.radius + out) * Math.sin(one.angle));
      const upright = zone.members.length <= 16;
      if (!upright) c.rotate(left ? one.angle + Math.PI : one.angle);
      const middle = upright && Math.abs(Math.cos(one.angle)) < 0.2;
      c.textAlign = middle ? "center" : left ? "right" : "left";
      c.fillStyle = this.hovered?.key === one.key ? colours.text : colours.soft;
      if (upright && middle) c.translate(0, Math.sin(one.angle) < 0 ? -5 : 5);
      const text = shortened(c, one.name, room);
      c.strokeText(text, 0, 0);
      c.fillText(text, 0, 0);
      c.restore();
    }
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let found = null;
    let least = 18 ** 2;
    for (const [key, at] of this.spotsNow ?? []) {
      const distance = (at.x - x) ** 2 + (at.y - y) ** 2;
      if (distance < least && !this.drawn.get(key)?.dying) { least = distance; found = this.drawn.get(key); }
    }
    this.point(found, x, y);
  }

  point(found, x = 0, y = 0) {
    const changed = found?.key !== this.hovered?.key;
    this.hovered = found;
    this.canvas.style.cursor = found?.watched ? "pointer" : "default";
    this.onhover(found, x, y);
    if (changed) this.animate();
  }
}

// Links between zones pass beside what lies on the straight way.
function bow(c, p, q) {
  const [dx, dy] = [q.x - p.x, q.y - p.y];
  const side = dx < 0 ? 0.16 : -0.16;
  c.quadraticCurveTo((p.x + q.x) / 2 - dy * side, (p.y + q.y) / 2 + dx * side, q.x, q.y);
}

function shortened(c, text, room) {
  if (c.measureText(text).width <= room) return text;
  let length = text.length - 1;
  while (length > 2 && c.measureText(`${text.slice(0, length)}…`).width > room) length--;
  return `${text.slice(0, length)}…`;
}
