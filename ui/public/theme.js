// Runs before the first paint, so that a dark page does not flash white.
try {
  const theme = localStorage.getItem("runyard.theme");
  if (theme === "dark" || theme === "light") document.documentElement.style.colorScheme = theme;
} catch {
  // storage may be disabled: use the system theme
}
