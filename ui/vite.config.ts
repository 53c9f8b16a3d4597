import { readFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// `RUNYARD_STUDIO=http://127.0.0.1:8787 npm run dev` serves the page with the API of a yard that listens there
const server = process.env.RUNYARD_STUDIO ?? "http://127.0.0.1:8787";

const BUNDLED = [
  "svelte",
  "uplot",
  "anser",
  "@dagrejs/dagre",
  "@dagrejs/graphlib",
  "@fontsource-variable/inter",
  "@fontsource-variable/jetbrains-mono",
];

export default defineConfig({
  plugins: [svelte(), licenses(BUNDLED)],
  resolve: { alias: { $: new URL("./src", import.meta.url).pathname } },
  build: {
    outDir: "../src/runyard/server/studio",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy forbids data: URLs
    target: "es2022",
    chunkSizeWarningLimit: 300,
    rolldownOptions: { checks: { pluginTimings: false } }, // no warnings about slow machines
  },
  // the host that `runyard studio` signed the browser in to: cookies are bound to hosts, not ports
  server: { host: "127.0.0.1", proxy: { "/api": { target: server, changeOrigin: true } } },
  test: { include: ["src/**/*.test.ts"], environment: "node", css: true },
});

/** Adds the licenses of the bundled packages to the build. */
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
