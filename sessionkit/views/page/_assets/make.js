// Elements of a page or a widget. Every text that comes from data goes through `textContent`, never through markup.

const SVG = "http://www.w3.org/2000/svg";

function put(element, attributes, children = []) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const make = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => put(document.createElementNS(SVG, tag), attributes, children);
