// Parser of the server-sent events format, without I/O.

export interface ServerEvent {
  event: string;
  data: string;
  id: string | null;
}

/** Accepts text in chunks of any size; returns the events that each chunk completes. */
export class EventParser {
  #rest = "";
  #event = "message";
  #data: string[] = [];
  #id: string | null = null;

  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.#data.length > 0) events.push({ event: this.#event, data: this.#data.join("\n"), id: this.#id });
        this.#event = "message";
        this.#data = [];
        continue;
      }
      this.#field(line);
    }
    return events;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment, sent to keep the connection alive
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
    else if (name === "id") this.#id = value;
  }
}
