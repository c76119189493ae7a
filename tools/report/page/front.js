// The front: every evaluated point, time to the right, accuracy upwards, with 95 % intervals as bars.
const measures = [
  { name: "Top-1", label: "top-1 accuracy, %", has: hasLabels, scale: 100,
    value: (point) => point.top1.value, low: (point) => point.top1.low, high: (point) => point.top1.high },
  { name: "Top-1 change", label: "change of top-1 on the same inputs, points", has: hasPairs, scale: -100,
    value: (point) => point.drop.value, low: (point) => ofOthers(point, point.drop.high), high: (point) => ofOthers(point, point.drop.low) },
  { name: "Agreement", label: "top-1 agreement with the reference, %", has: hasAgreement, scale: 100,
    value: (point) => point.agreement.value, low: (point) => point.agreement.low, high: (point) => point.agreement.high },
  { name: "Output SQNR", label: "output SQNR, dB", has: (point) => pointSqnr(point) !== null, scale: 1, open: true,
    value: pointSqnr, low: pointSqnr, high: pointSqnr },
];
// The reference differs from itself by 0, without an interval.
function ofOthers(point, limit) { return point.isReference ? 0 : limit; }
const usableMeasures = measures.filter((measure) => points.filter(measure.has).length > 1 || measure.open);
let measure = usableMeasures.find((each) => each.name === "Top-1 change") || usableMeasures[0];
let showsBars = false; // opacity of intervals, which hide the points if there are many
let selectedPoint = chosen || points.find((point) => point.on_front) || points[0] || null;

const kindOf = (point) =>
  point.isReference ? "reference" : point.isUniform ? "uniform" : point.on_front ? "on-front" : "other";
const kindNames = { reference: "reference", uniform: "one format for all", "on-front": "on the front", other: "other" };

const shapes = {
  reference: (size) => svg("rect", { x: -size, y: -size, width: 2 * size, height: 2 * size }),
  uniform: (size) => svg("path", { d: `M0 ${-1.2 * size}L${1.15 * size} ${0.9 * size}H${-1.15 * size}Z` }),
  "on-front": (size) => svg("circle", { r: size }),
  other: (size) => svg("path", { d: `M0 ${-1.2 * size}L${1.2 * size} 0L0 ${1.2 * size}L${-1.2 * size} 0Z` }),
};

// Round numbers: 1, 2 or 5 times a power of ten.
function roundStep(span, most) {
  const power = 10 ** Math.floor(Math.log10(span / most));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => span / step <= most);
}
function linearAxis(low, high, from, to, most) {
  const margin = (high - low || Math.abs(high) || 1) * 0.08;
  const bounds = [low - margin, high + margin];
  const step = roundStep(bounds[1] - bounds[0], most);
  const ticks = [];
  for (let i = Math.ceil(bounds[0] / step); i * step <= bounds[1]; ++i) ticks.push(i * step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return {
    place: (value) => from + ((value - bounds[0]) / (bounds[1] - bounds[0])) * (to - from),
    ticks: ticks.map((value) => ({ value, text: value.toFixed(decimals).replace(/^-0(\.0*)?$/, "0").replace("-", "−") })),
  };
}
function logarithmicAxis(low, high, from, to) {
  const bounds = [Math.log10(low) - 0.06, Math.log10(high) + 0.06];
  const ticks = [];
  for (let power = Math.floor(bounds[0]); power <= bounds[1]; ++power) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power, place = Math.log10(value);
      if (place >= bounds[0] && place <= bounds[1]) ticks.push({ value, text: digits(value, 1) });
    }
  }
  return { place: (value) => from + ((Math.log10(value) - bounds[0]) / (bounds[1] - bounds[0])) * (to - from), ticks };
}

// The shape of a point under the measure, in the units of the axes.
function markOf(point, unit) {
  const interval = showsBars && point.verified && measured(point.time) ? point.time : { low: null, high: null };
  const limit = (value, otherwise) => (isNumber(value) ? value : otherwise);
  const seconds = timeOf(point);
  return {
    point, seconds, x: seconds * unit.scale, y: measure.value(point) * measure.scale,
    left: limit(interval.low, seconds) * unit.scale, right: limit(interval.high, seconds) * unit.scale,
    low: limit(showsBars ? measure.low(point) : null, measure.value(point)) * measure.scale,
    high: limit(showsBars ? measure.high(point) : null, measure.value(point)) * measure.scale,
  };
}

function axes(marks, width, height, exact) {
  const xs = marks.flatMap((mark) => [mark.x, mark.left, mark.right]);
  const ys = marks.flatMap((mark) => [mark.y, mark.low, mark.high]).filter(Number.isFinite);
  const left = 52, right = width - 16, bottom = height - 46, top = exact ? 46 : 16;
  const low = Math.min(...xs), high = Math.max(...xs);
  const logarithmic = low > 0 && high / low > 8;
  return {
    left, right, top, bottom, logarithmic,
    x: logarithmic ? logarithmicAxis(low, high, left, right)
                   : linearAxis(low, high, left, right, Math.max(4, Math.floor(width / 80))),
    y: ys.length ? linearAxis(Math.min(...ys), Math.max(...ys), bottom, top, 6) : linearAxis(0, 1, bottom, top, 6),
    // Exact points are above the scale, which has no end.
    yOf(value) { return value === Infinity ? 20 : this.y.place(value); },
  };
}

function grid(frame, unit, exact) {
  const lines = [];
  for (const tick of frame.x.ticks) {
    const x = frame.x.place(tick.value);
    lines.push(svg("line", { class: "grid", x1: x, x2: x, y1: frame.top - 6, y2: frame.bottom }),
               svg("text", { x, y: frame.bottom + 18, "text-anchor": "middle" }, tick.text));
  }
  for (const tick of frame.y.ticks) {
    const y = frame.y.place(tick.value);
    if (y < frame.top - 6) continue;
    lines.push(svg("line", { class: "grid", x1: frame.left, x2: frame.right, y1: y, y2: y }),
               svg("text", { x: frame.left - 8, y: y + 4, "text-anchor": "end" }, tick.text));
  }
  if (exact) {
    lines.push(svg("line", { class: "grid broken", x1: frame.left, x2: frame.right, y1: 20, y2: 20 }),
               svg("text", { x: frame.left - 8, y: 24, "text-anchor": "end" }, "exact"));
  }
  lines.push(svg("line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }),
             svg("text", { class: "axis-name", x: (frame.left + frame.right) / 2, y: frame.bottom + 38, "text-anchor": "middle" },
                 `time of a run, ${unit.name}${frame.logarithmic ? " (logarithmic)" : ""} – faster is left`));
  return svg("g", { "aria-hidden": "true" }, lines);
}

function errorBars(mark, frame) {
  const x = frame.x.place(mark.x), y = frame.yOf(mark.y);
  const bars = svg("g", { class: "bars" });
  if (mark.right > mark.left) {
    const a = frame.x.place(mark.left), b = frame.x.place(mark.right);
    bars.append(svg("path", { d: `M${a} ${y}H${b}M${a} ${y - 3}v6M${b} ${y - 3}v6` }));
  }
  if (Number.isFinite(mark.y) && mark.high > mark.low) {
    const a = frame.y.place(mark.low), b = frame.y.place(mark.high);
    bars.append(svg("path", { d: `M${x} ${a}V${b}M${x - 3} ${a}h6M${x - 3} ${b}h6` }));
  }
  return bars;
}

// The first of the places next to the point without another label or point; none if all are taken.
const longestLabel = 30;
function placeLabel(name, x, y, taken, frame) {
  const text = name.length > longestLabel ? `${name.slice(0, longestLabel - 1)}…` : name;
  const width = text.length * 7, height = 14;
  const places = [["start", x + 10, y - 7], ["end", x - 10, y - 7], ["middle", x, y - 25], ["middle", x, y + 11],
                  ["start", x + 8, y - 22], ["start", x + 8, y + 8], ["end", x - 8, y - 22], ["end", x - 8, y + 8]];
  // Fonts differ: a label longer than expected grows away from the point.
  const leftOf = ([anchor, at]) => at - { start: 0, middle: width / 2, end: width }[anchor];
  const isFree = (left, top) =>
    left >= frame.left && left + width <= frame.right + 12 && top >= 2 && top + height <= frame.bottom &&
    taken.every((box) => left > box[0] + box[2] || box[0] > left + width || top > box[1] + box[3] || box[1] > top + height);
  const place = places.find((each) => isFree(leftOf(each), each[2]));
  if (!place) return null;
  taken.push([leftOf(place), place[2], width, height]);
  return svg("text", { class: "label", x: place[1], y: place[2] + 11, "text-anchor": place[0] }, text);
}

function describe(point) {
  const parts = [`${point.name}: ${time(timeOf(point))}`];
  if (hasLabels(point)) parts.push(`top-1 ${percent(point.top1.value)} (${percentInterval(point.top1)})`);
  if (hasAgreement(point)) parts.push(`agreement ${percent(point.agreement.value)}`);
  parts.push(`SQNR ${decibel(pointSqnr(point))}`, point.verified ? "measured" : "predicted only");
  if (point.chosen) parts.push("chosen");
  return parts;
}

function drawPoint(mark, frame, tip) {
  const { point } = mark, kind = kindOf(point);
  const x = frame.x.place(mark.x), y = frame.yOf(mark.y);
  const group = svg("g", {
    class: `point ${kind}${point.verified ? "" : " predicted"}`, transform: `translate(${x} ${y})`, tabindex: 0,
    role: "button", "aria-label": describe(point).join(", "), "aria-pressed": String(point === selectedPoint),
    "data-point": point.order,
    on: {
      click: () => selectPoint(point),
      keydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        selectPoint(point);
      },
      pointerenter: () => tip.show(point, x, y), pointerleave: tip.hide,
      focus: () => tip.show(point, x, y), blur: tip.hide,
    },
  });
  group.append(svg("circle", { class: "reach", r: 14 }), svg("circle", { class: "ring", r: 10 }));
  if (point.chosen) group.append(svg("circle", { class: "halo", r: 9 }));
  group.append(shapes[kind](5));
  return group;
}

function makeTip(figure, width) {
  const tip = html("div", { class: "tip", role: "presentation", hidden: true });
  figure.append(tip);
  return {
    show(point, x, y) {
      const [first, ...rest] = describe(point);
      tip.replaceChildren(html("strong", {}, first), ...rest.map((line) => html("div", {}, line)));
      tip.hidden = false;
      tip.style.left = `${Math.max(0, Math.min(x + 14, width - tip.offsetWidth))}px`;
      tip.style.top = `${y + 16}px`;
    },
    hide() { tip.hidden = true; },
  };
}

// Clamps to the frame, also a request beyond it; null if there is nothing to show.
function whatIfPlace(frame, unit) {
  if (!changes.size || !measure.open || contradictions().length) return null;
  const sum = whatIf(), sqnr = sqnrOf(sum.error);
  if (!isNumber(sum.time) || sqnr === null) return null;
  return { x: Math.min(Math.max(frame.x.place(sum.time * unit.scale), frame.left), frame.right),
           y: Math.min(Math.max(frame.yOf(sqnr), 8), frame.bottom) };
}
function whatIfMark({ x, y }) {
  return svg("g", { class: "point what-if-mark", transform: `translate(${x} ${y})`, "aria-label": "what if", role: "img" },
             svg("path", { d: "M0 -8L8 0L0 8L-8 0Z" }));
}

function chart(width) {
  const figure = byId("front");
  figure.replaceChildren();
  const shown = points.filter((point) => measure.has(point) && isNumber(timeOf(point)));
  if (!shown.length) {
    figure.append(html("p", { class: "note" }, "No point was evaluated."));
    return;
  }
  const height = Math.round(Math.min(430, Math.max(300, width * 0.62)));
  const unit = timeUnit(Math.max(...shown.map(timeOf)));
  const marks = shown.map((point) => markOf(point, unit));
  const exact = marks.some((mark) => mark.y === Infinity);
  const frame = axes(marks, width, height, exact);
  const tip = makeTip(figure, width);
  const line = marks.filter((mark) => mark.point.on_front && Number.isFinite(mark.y)).sort((a, b) => a.x - b.x)
    .map((mark) => `${frame.x.place(mark.x)} ${frame.yOf(mark.y)}`);
  const taken = marks.map((mark) => [frame.x.place(mark.x) - 7, frame.yOf(mark.y) - 7, 14, 14]);
  const wish = whatIfPlace(frame, unit);
  if (wish) taken.push([wish.x - 8, wish.y - 8, 16, 16]);
  const named = [...marks].sort((a, b) => rank(a.point) - rank(b.point));
  figure.prepend(svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group",
                              "aria-label": `${measure.name} against time, ${shown.length} points` },
    grid(frame, unit, exact),
    line.length > 1 && svg("path", { class: "front-line", d: `M${line.join("L")}` }),
    marks.map((mark) => errorBars(mark, frame)),
    wish && placeLabel("what if", wish.x, wish.y, taken, frame),
    named.map((mark) => placeLabel(mark.point.chosen ? `${mark.point.name} – chosen` : mark.point.name,
                                   frame.x.place(mark.x), frame.yOf(mark.y), taken, frame)),
    [...marks].sort((a, b) => a.point.chosen - b.point.chosen).map((mark) => drawPoint(mark, frame, tip)),
    wish && whatIfMark(wish)));
  figure.append(keyOf(shown));
}
// The order in which points get labels if there is little space.
const rank = (point) => (point.chosen ? 0 : point.isReference ? 1 : point === selectedPoint ? 2 : point.isUniform ? 3 : 4);

function keyOf(shown) {
  const kinds = Object.keys(shapes).filter((kind) => shown.some((point) => kindOf(point) === kind));
  const entry = (classes, shape, text) =>
    html("span", {}, svg("svg", { width: 18, height: 18, viewBox: "-9 -9 18 18", "aria-hidden": "true" },
                         svg("g", { class: `point ${classes}` }, shape)), text);
  const hidden = points.length - shown.length;
  return html("figcaption", {},
    html("div", { class: "key" },
      kinds.map((kind) => entry(kind, shapes[kind](5), kindNames[kind])),
      shown.some((point) => !point.verified) && entry("on-front predicted", shapes["on-front"](5), "hollow: predicted only"),
      shown.some((point) => point.chosen) && entry("on-front", svg("circle", { class: "halo", r: 7 }), "chosen")),
    html("p", { class: "note" }, axisNote(),
         hidden > 0 ? ` ${hidden} ${hidden === 1 ? "point was" : "points were"} only predicted: see Output SQNR.` : ""));
}
const axisNote = () => `Upwards: ${measure.label}. ${showsBars ? "Bars are 95 % intervals of the measurements on this device." : ""}`;

function drawFront() {
  show("measures", usableMeasures.length > 1 && usableMeasures.map((each) =>
    html("button", { type: "button", "aria-pressed": String(each === measure),
                     on: { click: () => { measure = each; drawFront(); } } }, each.name)),
    points.length > 0 && html("button", { type: "button", id: "bars", "aria-pressed": String(showsBars),
                     on: { click: () => { showsBars = !showsBars; drawFront(); byId("bars").focus({ preventScroll: true }); } } }, "Intervals"));
  chart(Math.max(280, Math.floor(byId("front").clientWidth)));
}
