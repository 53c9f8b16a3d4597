import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// `RUNYARD_STUDIO=http://127.0.0.1:8787 npm run dev` works on the page against a yard that listens there
const yard = process.env.RUNYARD_STUDIO ?? "http://127.0.0.1:8787";

export default defineConfig({
  plugins: [svelte()],
  resolve: { alias: { $: new URL("./src", import.meta.url).pathname } },
  build: {
    outDir: "../src/runyard/server/studio",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no data: addresses
    target: "es2022",
    chunkSizeWarningLimit: 300,
  },
  server: { proxy: { "/api": { target: yard, changeOrigin: true } } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
