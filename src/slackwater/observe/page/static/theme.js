// Light or dark: the browser's preference, until the user chooses.

const THEME = "slackwater-theme";

export function followTheme(button, changed) {
  const show = (name) => {
    document.documentElement.dataset.theme = name;
    changed();
  };
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => localStorage.getItem(THEME) || (preferred.matches ? "dark" : "light");
  show(chosen());
  preferred.addEventListener("change", () => show(chosen()));
  button.addEventListener("click", () => {
    localStorage.setItem(THEME, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    show(chosen());
  });
}
