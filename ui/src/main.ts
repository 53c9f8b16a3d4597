import "./design/fonts.css";
import "./design/tokens.css";
import "./design/base.css";
import { mount } from "svelte";
import App from "./App.svelte";

const place = document.getElementById("app");
if (place === null) throw new Error("index.html has no #app");
place.replaceChildren();
mount(App, { target: place });
