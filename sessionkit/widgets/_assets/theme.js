// The theme of the page that a board is on: as the notebook says it, else as the system does.
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const THEME_MARKS = ["data-jp-theme-light", "data-vscode-theme-kind", "data-theme", "class"];

function pageTheme() {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false" ? "dark" : "light";
  if (vscodeThemeKind) return /light$/.test(vscodeThemeKind) ? "light" : "dark";
  for (const element of [document.body, document.documentElement]) {
    for (const theme of ["dark", "light"]) {
      if (element.dataset.theme === theme || element.classList.contains(theme)) return theme;
    }
  }
  return systemIsDark.matches ? "dark" : "light";
}

// Calls back when the theme may have changed; gives a function that ends it.
function followTheme(changed) {
  const watcher = new MutationObserver(changed);
  for (const element of [document.body, document.documentElement]) {
    watcher.observe(element, { attributes: true, attributeFilter: THEME_MARKS });
  }
  systemIsDark.addEventListener("change", changed);
  return () => {
    watcher.disconnect();
    systemIsDark.removeEventListener("change", changed);
  };
}

