import { readFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// `RUNYARD_STUDIO=http://127.0.0.1:8787 npm run dev` works on the page against a yard that listens there
const yard = process.env.RUNYARD_STUDIO ?? "http://127.0.0.1:8787";

export default defineConfig({
  plugins: [svelte(), licenses(["svelte", "uplot", "@fontsource-variable/inter", "@fontsource-variable/jetbrains-mono"])],
  resolve: { alias: { $: new URL("./src", import.meta.url).pathname } },
  build: {
    outDir: "../src/runyard/server/studio",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no data: addresses
    target: "es2022",
    chunkSizeWarningLimit: 300,
    rolldownOptions: { checks: { pluginTimings: false } }, // a slow machine is no reason to complain
  },
  // the host that `runyard studio` signed the browser in to: cookies know hosts, not ports
  server: { host: "127.0.0.1", proxy: { "/api": { target: yard, changeOrigin: true } } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});

/** What others wrote goes into the page, and so do their licenses. */
function licenses(packages: string[]): Plugin {
  const text = (name: string, file: string) => readFileSync(new URL(`./node_modules/${name}/${file}`, import.meta.url), "utf8");
  return {
    name: "licenses",
    generateBundle() {
      const files: Record<string, string> = { svelte: "LICENSE.md" };
      const source = packages.map((name) => `== ${name}\n\n${text(name, files[name] ?? "LICENSE")}`).join("\n");
      this.emitFile({ type: "asset", fileName: "assets/licenses.txt", source });
    },
  };
}
