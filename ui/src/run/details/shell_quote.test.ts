import { expect, it } from "vitest";
import { commandLine } from "./shell_quote";

it("quotes arguments with special characters", () => {
  expect(commandLine(["python", "train.py", "--lr", "0.1"])).toBe("python train.py --lr 0.1");
  expect(commandLine(["echo", "a b", "it's", "$HOME", ""])).toBe(`echo 'a b' 'it'\\''s' '$HOME' ''`);
});
