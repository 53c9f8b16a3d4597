// The kind of preview for a file, by its extension.

export type PreviewKind = "image" | "audio" | "video" | "table" | "json" | "text";

const BY_EXTENSION: Record<string, PreviewKind> = {
  png: "image", jpg: "image", jpeg: "image", gif: "image", webp: "image", bmp: "image", svg: "image", avif: "image",
  wav: "audio", mp3: "audio", flac: "audio", ogg: "audio", m4a: "audio", opus: "audio",
  mp4: "video", webm: "video",
  csv: "table", tsv: "table",
  json: "json", ipynb: "json",
};

export function previewKind(name: string): PreviewKind {
  const extension = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  return Object.hasOwn(BY_EXTENSION, extension) ? BY_EXTENSION[extension]! : "text";
}
