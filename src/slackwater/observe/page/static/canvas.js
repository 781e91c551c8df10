// Canvases with their size and colours, and hints for the pointer's position.

export function colour(name, alpha) {
  const value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  return alpha === undefined ? value : `rgba(${value}, ${alpha})`;
}

export function paper(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const ink = canvas.getContext("2d");
  ink.setTransform(ratio, 0, 0, ratio, 0, 0);
  ink.clearRect(0, 0, width, height);
  ink.font = "11px system-ui, sans-serif";
  return { ink, width, height };
}

const hint = () => document.getElementById("hint");

export function hinted(canvas, text) {
  const show = (x, y, clientX, clientY) => {
    const shown = text(x, y);
    const box = hint();
    box.hidden = !shown;
    if (!shown) return;
    box.textContent = shown;
    const { width, height } = box.getBoundingClientRect();
    box.style.left = `${Math.min(clientX + 14, window.innerWidth - width - 6)}px`;
    box.style.top = `${Math.min(clientY + 14, window.innerHeight - height - 6)}px`;
  };
  canvas.addEventListener("pointermove", (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    show(event.clientX - left, event.clientY - top, event.clientX, event.clientY);
  });
  canvas.addEventListener("pointerleave", () => { hint().hidden = true; });
}

export function ticks(largest, most, show) {
  // Round values for grid lines, as many as have labels of their own.
  for (let step = steps(largest, most); ; step = steps(1.01 * step, 1)) {
    const values = [];
    for (let value = 0; value <= largest; value += step) values.push(value);
    if (new Set(values.map(show)).size === values.length) return values;
  }
}

function steps(largest, most) {
  // A round distance between grid lines.
  const raw = largest / most;
  const size = 10 ** Math.floor(Math.log10(raw || 1));
  return [1, 2, 5, 10].map((factor) => factor * size).find((step) => step >= raw) || size;
}
