// Text that can be copied with one press.
function render({ model, el }) {
  const text = document.createElement("pre");
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "copy" });
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  text.tabIndex = 0;
  el.classList.add("sessionkit-code");
  el.append(button, said, text);
  const show = () => {
    text.textContent = model.get("text");
    text.setAttribute("aria-label", model.get("label"));
    said.textContent = "";
  };
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(model.get("text"));
      said.textContent = "copied";
    } catch {
      window.getSelection().selectAllChildren(text);
      said.textContent = "selected: press Ctrl-C to copy";
    }
  });
  model.on("change:text", show);
  show();
  return () => model.off("change:text", show);
}

export default { render };
