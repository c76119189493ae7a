// The selected point in full, and the table of all points.
function pairedBar(point) {
  const parts = [["both right", point.both_right, "right"], ["lost", point.lost, "lost"],
                 ["gained", point.gained, "gained"], ["both wrong", point.both_wrong, "wrong"]];
  return [
    html("div", { class: "paired", "aria-hidden": "true" },
         parts.filter((part) => part[1] > 0).map(([, amount, name]) => html("i", { class: name, style: { "flex-grow": amount } }))),
    html("ul", { class: "paired-key" }, parts.map(([text, amount, name]) =>
      html("li", {}, html("i", { class: name, "aria-hidden": "true" }), `${text} `, html("b", {}, count(amount))))),
  ];
}

function rulesOf(point) {
  const uses = new Map();
  for (const site of sites) {
    const rule = point.assignment[site.key] || asItIs;
    uses.set(rule, (uses.get(rule) || 0) + 1);
  }
  return [...uses].sort((a, b) => (a[0] === asItIs) - (b[0] === asItIs) || b[1] - a[1])
    .map(([rule, amount]) => html("li", {}, html("span", { class: "rule" }, ruleName(rule)), ` × ${amount}`));
}

const speedUp = (point) =>
  reference && !point.isReference && timeOf(point) > 0 ? `${digits(timeOf(reference) / timeOf(point))} ×` : missing;

function worstClass(point) {
  if (!hasLabels(point) || point.worst_class < 0 || !isNumber(point.worst_class_drop)) return missing;
  if (point.worst_class_drop <= 0) return "no class lost";
  return `class ${point.worst_class}: ${signed(-point.worst_class_drop * 100, 1, " points")}`;
}

// The mean loss of each epoch, from the first at the left.
function learningCurve(curve) {
  const width = 240, height = 60, most = Math.max(...curve), step = width / Math.max(curve.length - 1, 1);
  const places = curve.map((loss, epoch) => `${(epoch * step).toFixed(1)},${(height - (loss / most) * height).toFixed(1)}`);
  return svg("svg", { class: "curve", viewBox: `0 -2 ${width} ${height + 4}`, role: "img",
                      "aria-label": `loss ${digits(curve[0])} in the first epoch, ${digits(curve[curve.length - 1])} in the last` },
             svg("polyline", { points: places.join(" ") }));
}

function retrainingOf(point) {
  const trained = point.retraining;
  if (!trained || trained.curve.length === 0) return [];
  return [html("h4", {}, "Retraining"), learningCurve(trained.curve),
    html("dl", { class: "pairs" },
      pair("Epochs", count(trained.epochs), html("small", {}, `${count(trained.steps)} steps, seed ${trained.seed}`)),
      pair("Loss", `${digits(trained.curve[0])} → ${digits(trained.curve[trained.curve.length - 1])}`, html("small", {}, trained.loss)),
      pair("Data", `${count(trained.samples)} samples`, html("code", { class: "hash" }, trained.data_hash)),
      pair("Weights", html("code", { class: "hash" }, trained.weights_hash)))];
}

function drawPointCard() {
  const point = selectedPoint;
  if (!point) return;
  const marks = [point.chosen && "chosen", point.retraining && "retrained", point.on_front && "on the front", point.verified ? "measured" : "predicted only"];
  show("point",
    html("h3", { id: "point-name" }, point.name),
    html("p", { class: "chips" }, marks.filter(Boolean).map((mark) => html("span", { class: "chip" }, mark))),
    html("dl", { class: "pairs" },
      pair("Time", time(timeOf(point)), html("small", {}, point.verified ? timeInterval(point.time) : "predicted")),
      reference && !point.isReference ? pair("Speed-up", speedUp(point)) : [],
      hasLabels(point) ? pair("Top-1", percent(point.top1.value), html("small", {}, `${percentInterval(point.top1)}, n = ${count(point.samples)}`)) : [],
      hasPairs(point) && !point.isReference ? pair("Change", signed(-point.drop.value * 100, 2, " points"),
        html("small", {}, `${signed(-point.drop.high * 100, 2, "")} to ${signed(-point.drop.low * 100, 2, "")}, McNemar p = ${digits(point.mcnemar_p, 2)}`)) : [],
      hasAgreement(point) ? pair("Agreement", percent(point.agreement.value), html("small", {}, percentInterval(point.agreement))) : [],
      hasAgreement(point) ? pair("Flips", count(point.flips)) : [],
      hasLabels(point) && !point.isReference ? pair("Worst class", worstClass(point)) : [],
      usesMetric ? pair("Your metric", digits(point.user_metric, 4)) : [],
      pair("Output SQNR", decibel(pointSqnr(point)),
           point.verified && !point.isReference ? html("small", {}, `predicted ${decibel(sqnrOf(point.predicted_error))}`) : null),
      isNumber(point.psnr) ? pair("Output PSNR", decibel(point.psnr)) : [],
      pair("Weights", bytes(point.size))),
    hasLabels(point) && !point.isReference ? [html("h4", {}, "The same inputs, in pairs"), pairedBar(point)] : [],
    retrainingOf(point), html("h4", {}, "Rules"), html("ul", { class: "rules" }, rulesOf(point)));
}
const usesMetric = points.some((point) => point.verified && isNumber(point.user_metric) && point.user_metric !== 0);

function pointCells(point) {
  return [
    [time(timeOf(point)), point.verified ? timeInterval(point.time) : "predicted"],
    [speedUp(point)],
    hasLabels(point) ? [percent(point.top1.value), percentInterval(point.top1)] : [missing],
    hasLabels(point) && !point.isReference ? [`${count(point.lost)} / ${count(point.gained)}`] : [missing],
    hasAgreement(point) ? [percent(point.agreement.value), percentInterval(point.agreement)] : [missing],
    hasAgreement(point) ? [count(point.flips)] : [missing],
    [point.isReference ? missing : worstClass(point)],
    [decibel(pointSqnr(point))],
    [isNumber(point.psnr) ? decibel(point.psnr) : missing],
    [bytes(point.size)],
    [usesMetric ? digits(point.user_metric, 4) : missing],
  ];
}

function pointRow(point, cells) {
  return html("tr", { "aria-selected": String(point === selectedPoint), class: point.verified ? null : "predicted" },
    html("th", { scope: "row" }, html("button", { type: "button", class: "name", "data-select-point": point.order,
                                                  on: { click: () => selectPoint(point) } }, point.name),
         point.chosen && html("span", { class: "chip" }, "chosen")),
    cells.map(([value, small]) => html("td", {}, value, small && html("small", {}, small))));
}

function drawPointTable() {
  const heads = ["Time", "Speed-up", "Top-1", "Lost / gained", "Agreement", "Flips", "Worst class", "Output SQNR", "Output PSNR", "Weights", "Your metric"];
  // The chosen point first, then the fastest; ties by the smallest error.
  const order = (a, b) => b.chosen - a.chosen || timeOf(a) - timeOf(b) || errorOf(a) - errorOf(b);
  const rows = [...points].sort(order).map((point) => ({ point, cells: pointCells(point) }));
  // Outputs of scores have no PSNR, and images have no classes.
  const used = (_, column) => rows.some(({ cells }) => cells[column][0] !== missing);
  show("points", html("table", {},
    html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "Point"), heads.filter(used).map((head) => html("th", { scope: "col" }, head)))),
    html("tbody", {}, rows.map(({ point, cells }) => pointRow(point, cells.filter(used))))));
}

function selectPoint(point) {
  const focused = document.activeElement && document.activeElement.dataset;
  const back = focused && ["point", "selectPoint"].find((name) => focused[name] !== undefined);
  selectedPoint = point;
  keepAddress({ point: point.name });
  drawFront();
  drawPointCard();
  drawPointTable();
  // Redrawing removes the focus after a key press.
  const selector = back === "point" ? `[data-point="${point.order}"]` : back ? `[data-select-point="${point.order}"]` : null;
  if (selector) document.querySelector(selector).focus({ preventScroll: true });
}
