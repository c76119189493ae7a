// The graph of the network: graphviz has placed its nodes; this file draws it and highlights the layer.
const nodeOfLayer = new Map();
picture.nodes.forEach((node, index) => node.layers.forEach((name) => nodeOfLayer.set(name, index)));
const nodeElements = [], edgeElements = [];

// A name that fits the width of its node, from both ends, since ends tell layers apart.
const fits = (width) => Math.max(4, Math.floor((width - 12) / 6.2));
function fitted(name, width) {
  const most = fits(width);
  if (name.length <= most) return name;
  const tail = Math.ceil((most - 1) * 0.6);
  return `${name.slice(0, most - 1 - tail)}…${name.slice(-tail)}`;
}

function operationOf(name) {
  const layer = layerByName.get(name);
  if (layer) return layer.operation;
  return (sitesOfLayer.get(name) || []).map((site) => site.operation).find(Boolean) || (nodeOfLayer.has(name) ? "input" : "");
}
const layerChanged = (name) => (sitesOfLayer.get(name) || []).some(isChanged);

function drawNode(node) {
  const [first] = node.layers, several = node.layers.length > 1;
  const changed = node.layers.some(layerChanged);
  const rules = [...new Set(node.layers.flatMap((name) => sitesOfLayer.get(name) || []).filter(isChanged).map((site) => site.chosen))];
  const title = several ? `${first} to ${node.layers[node.layers.length - 1]}, ${node.layers.length} layers` : first;
  const kind = several ? `and ${node.layers.length - 1} more` : operationOf(first);
  const full = [kind, ...rules].filter(Boolean).join(" · ");
  const below = full.length <= fits(node.width) ? full : rules.length === 1 ? rules[0] : kind;
  return svg("g", { class: `node${changed ? " changed" : ""}`, transform: `translate(${node.x} ${node.y})`, role: "button",
                    "aria-label": `${title}${changed ? ", changed" : ""}`, on: { click: () => selectLayer(first, null, false) } },
    svg("title", {}, `${title}${rules.length ? `: ${rules.join(", ")}` : ""}`),
    svg("rect", { x: -node.width / 2, y: -node.height / 2, width: node.width, height: node.height, rx: 6 }),
    svg("text", { y: -3, "text-anchor": "middle" }, fitted(first, node.width)),
    svg("text", { y: 12, "text-anchor": "middle", class: "small" }, fitted(below, node.width)));
}

function drawEdge({ points: [start, ...rest] }) {
  const path = `M${start.join(" ")}C${rest.map((point) => point.join(" ")).join(" ")}`;
  return svg("path", { class: "edge", d: path, "marker-end": "url(#arrow)" });
}

function startPicture() {
  const place = byId("picture");
  if (!picture.nodes.length) {
    place.replaceChildren(html("p", { class: "note" }, "There is no graph of this network."));
    return;
  }
  nodeElements.push(...picture.nodes.map(drawNode));
  edgeElements.push(...picture.edges.map(drawEdge));
  const margin = 8;
  place.replaceChildren(svg("svg", {
    width: picture.width + 2 * margin, height: picture.height + 2 * margin, role: "group", "aria-label": "Network",
    viewBox: `${-margin} ${-margin} ${picture.width + 2 * margin} ${picture.height + 2 * margin}` },
    svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
                        svg("path", { d: "M0 0L8 4L0 8Z" }))),
    edgeElements, nodeElements));
  show("legend", html("span", {}, html("i", { class: "swatch changed" }), "changed"),
       html("span", {}, html("i", { class: "swatch" }), "as it is"), html("span", {}, html("i", { class: "swatch lit" }), "selected"),
       html("span", {}, html("i", { class: "swatch read" }), "read by it"),
       "Click a layer.");
  // One stop for the keyboard; arrows go from layer to layer in the order of the model.
  place.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const now = nodeOfLayer.has(selectedLayer) ? nodeOfLayer.get(selectedLayer) : -step;
    const next = picture.nodes[Math.min(Math.max(now + step, 0), picture.nodes.length - 1)];
    selectLayer(next.layers[0], null, false);
  });
}

function lightLayer(name) {
  const index = nodeOfLayer.get(name);
  const read = new Set(picture.edges.filter((edge) => edge.to === index).map((edge) => edge.from));
  nodeElements.forEach((element, each) => {
    element.classList.toggle("lit", each === index);
    element.classList.toggle("read", read.has(each));
  });
  edgeElements.forEach((element, each) => element.classList.toggle("read", picture.edges[each].to === index));
  if (index === undefined) return;
  const place = byId("picture"), node = picture.nodes[index];
  place.scrollTo({ left: node.x - place.clientWidth / 2, top: node.y - place.clientHeight / 2 });
}
