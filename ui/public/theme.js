// Before the first paint, so that a dark room is not lit by a white page for a moment.
try {
  const chosen = localStorage.getItem("runyard.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.style.colorScheme = chosen;
} catch {
  // storage may be forbidden: then the system's choice holds
}
