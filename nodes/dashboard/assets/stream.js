// One view, live: the whole of it first, then what changed (RFC 7396).

export function apply(target, patch) {
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete target[key];
    else if (typeof value === "object" && !Array.isArray(value)) {
      const old = target[key];
      target[key] = apply(old && typeof old === "object" && !Array.isArray(old) ? old : {}, value);
    } else target[key] = value;
  }
  return target;
}

export function follow(view, onmodel) {
  const live = document.getElementById("live");
  const source = new EventSource(`/stream/${view}`);
  let model = {};
  let waiting = false;
  const show = () => {
    if (waiting) return;
    waiting = true;
    const paint = () => { waiting = false; onmodel(model); };
    if (document.hidden) setTimeout(paint, 200);
    else requestAnimationFrame(paint);
  };
  const say = (state, text) => { live.dataset.state = state; live.textContent = text; };
  source.addEventListener("open", () => say("live", "live"));
  source.addEventListener("error", () => say("lost", "connection lost"));
  source.addEventListener("state", (event) => { model = JSON.parse(event.data); show(); });
  source.addEventListener("patch", (event) => { apply(model, JSON.parse(event.data)); show(); });
  return () => source.close();
}
