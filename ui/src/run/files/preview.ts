// How a file is best looked at, by its name.

export type Look = "image" | "audio" | "video" | "table" | "json" | "text";

const BY_ENDING: Record<string, Look> = {
  png: "image", jpg: "image", jpeg: "image", gif: "image", webp: "image", bmp: "image", svg: "image", avif: "image",
  wav: "audio", mp3: "audio", flac: "audio", ogg: "audio", m4a: "audio", opus: "audio",
  mp4: "video", webm: "video",
  csv: "table", tsv: "table",
  json: "json", ipynb: "json",
};

export function lookOf(name: string): Look {
  const ending = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  return Object.hasOwn(BY_ENDING, ending) ? BY_ENDING[ending]! : "text";
}
