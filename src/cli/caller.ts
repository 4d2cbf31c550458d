import { hostname, userInfo } from 'node:os';

/** Who runs this program, for records: the user, the machine and the process. */
export function callerText(): string {
  return `${userName()} on ${hostname()}, process ${process.pid}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user id without an entry among the users, as in containers.
    return process.env.USER ?? `user id ${process.getuid?.() ?? 'unknown'}`;
  }
}
