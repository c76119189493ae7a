// Making elements. Text becomes text nodes and nothing else: the name of a layer is never read as HTML.
function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

function assign(element, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, setting] of Object.entries(value)) element.style.setProperty(property, setting);
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  return element;
}

const html = (tag, attributes, ...children) => fill(assign(document.createElement(tag), attributes), children);
const svg = (tag, attributes, ...children) =>
  fill(assign(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes), children);
const byId = (id) => document.getElementById(id);
function show(id, ...children) {
  const place = byId(id);
  place.replaceChildren();
  return fill(place, children);
}
// A name and its value in a list of pairs.
const pair = (name, ...value) => [html("dt", {}, name), html("dd", {}, ...value)];

// A name breaks after its separators before it breaks anywhere.
const breakable = (name) => name.split(/(?<=[/._])/).map((part) => [part, html("wbr", {})]);

// Exactly one of several buttons is pressed.
function pressOne(buttons, isPressed) {
  for (const button of buttons) button.setAttribute("aria-pressed", String(isPressed(button)));
}
