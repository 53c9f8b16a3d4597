import { describe, expect, it } from "vitest";
import { bytes, compact, count, number } from "./number";
import { nameAndVersion } from "./name";
import { ago, duration } from "./time";

describe("numbers", () => {
  it("keep enough digits to distinguish two runs", () => {
    expect(number(0.03125)).toBe("0.03125");
    expect(number(98.1312)).toBe("98.13");
    expect(number(0.1)).toBe("0.1");
    expect(number(12345)).toBe("12,345");
    expect(number(1.20307e-8)).toBe("1.203e-8");
    expect(number(-2.5)).toBe("−2.5");
  });

  it("show NaN, infinity and missing values", () => {
    expect(number(Number.NaN)).toBe("NaN");
    expect(number(-Infinity)).toBe("−∞");
    expect(number(null)).toBe("");
    expect(number("adam")).toBe("adam");
    expect(number({ recall: [0.5] })).toBe('{"recall":[0.5]}');
  });

  it("are counted with their unit", () => {
    expect(count(1, "run")).toBe("1 run");
    expect(count(10_000, "run")).toBe("10,000 runs");
    expect(compact(1_234_000)).toBe("1.23M");
    expect(compact(999)).toBe("999");
    expect(bytes(512)).toBe("512 B");
    expect(bytes(1_400)).toBe("1.4 kB");
    expect(bytes(999_999)).toBe("1.0 MB");
  });
});

describe("time", () => {
  it("shows the two largest units", () => {
    expect(duration(0.34)).toBe("0.34 s");
    expect(duration(12.06)).toBe("12.1 s");
    expect(duration(59.97)).toBe("1 min 00 s");
    expect(duration(185)).toBe("3 min 05 s");
    expect(duration(7640)).toBe("2 h 07 min");
    expect(duration(86_400 * 4 + 3600 * 3)).toBe("4 d 3 h");
    expect(duration(null)).toBe("");
  });

  it("is shown relative to now, then as a date", () => {
    expect(ago(100, 101)).toBe("just now");
    expect(ago(100, 140)).toBe("40 s ago");
    expect(ago(0, 3 * 3600)).toBe("3 h ago");
    expect(ago(0, 86_400 * 1.5)).toBe("yesterday");
    expect(ago(0, 86_400 * 12)).toBe("12 d ago");
    expect(ago(1_700_000_000, 1_800_000_000)).toMatch(/^2023-11-1[45]$/);
  });
});

it("splits a name from its version", () => {
  expect(nameAndVersion("a:b:3")).toEqual({ name: "a:b", version: "3" });
  expect(nameAndVersion("digits")).toEqual({ name: "digits", version: "" });
});
