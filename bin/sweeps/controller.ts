/** Which process runs a sweep, and whether it still does. */

import { hostname } from "node:os";
import { processAlive } from "../../lib/platform/local/process-alive.ts";
import type { SweepRecord } from "../../lib/platform/ports.ts";
import { CommandError } from "../command.ts";

/** A controller tells of itself every second; after this silence another may take its place. */
const silenceMs = 60_000;

export function ownController(now: number, startedAt: number): NonNullable<SweepRecord["controller"]> {
  return {
    pid: process.pid,
    host: hostname(),
    startedAt: new Date(startedAt).toISOString(),
    heartbeatAt: new Date(now).toISOString(),
  };
}

/** True while the process that a sweep names runs it. A number of a process that ended may belong to another by now, so its word has to be fresh too. */
export function isAlive(controller: SweepRecord["controller"], now: number): boolean {
  if (controller === null) return false;
  if (now - Date.parse(controller.heartbeatAt) > silenceMs) return false;
  if (controller.host !== hostname()) return true;
  // Started again in its container, a process may have the number that its killed predecessor had.
  if (controller.pid === process.pid) return Date.parse(controller.startedAt) >= now - process.uptime() * 1000;
  return processAlive(controller.pid);
}

/** @throws CommandError while another process runs the sweep */
export function refuseSecondController(record: SweepRecord | null, now: number): void {
  if (record?.controller && isAlive(record.controller, now)) {
    const { pid, host } = record.controller;
    throw new CommandError(
      2,
      `the sweep ${record.sweep} is being run by process ${pid} on ${host}; ` +
        `\`proctor status ${record.sweep}\` shows it, \`proctor abort ${record.sweep}\` stops it`,
    );
  }
}
