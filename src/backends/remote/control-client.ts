import type { InvalidIssue, Pointer, Readiness, Resource } from '../../resource/index.ts';
import type { StoreAdmin } from '../../state/index.ts';
import type { ControllerNote, InfoResponse, ReleaseFinalizerResponse, ResourceCodec, WireResource } from '../../wire/index.ts';
import { controlService } from '../../wire/index.ts';
import type { Calls } from './calls.ts';
import { defaultDeadlineMs } from './calls.ts';
import { remoteAdmin } from './remote-admin.ts';

/** One thing wrong with one resource of a bundle. */
export interface BundleProblem extends InvalidIssue {
  /** Which of the resources. */
  readonly index: number;
}

/** What the eight calls cannot say, from a server of ours. */
export class ControlClient {
  readonly #calls: Calls;
  readonly #codec: ResourceCodec;
  readonly info: InfoResponse;
  /** Looks after the store behind the server; Unsupported where that has no file of its own. */
  readonly store: StoreAdmin;

  constructor(calls: Calls, info: InfoResponse, codec: ResourceCodec) {
    this.#calls = calls;
    this.#codec = codec;
    this.info = info;
    this.store = remoteAdmin(calls, codec);
  }

  /** Checks a bundle by the server's definitions; the resources as they would be stored when nothing is wrong. */
  async validate(
    resources: readonly Resource[],
  ): Promise<{ readonly problems: readonly BundleProblem[]; readonly resources: readonly Resource[] }> {
    const problems: BundleProblem[] = [];
    const valid: Resource[] = [];
    // Each is checked by itself, so a bundle that is larger than a request may be is checked in parts.
    for (let start = 0; start < resources.length; ) {
      let end = start;
      let bytes = 0;
      const resource: WireResource[] = [];
      for (; end < resources.length; end++) {
        const next = resources[end] as Resource;
        bytes += this.#codec.encode(next).length;
        if (resource.length > 0 && bytes > partBytes) break;
        resource.push(this.#codec.toWire(next));
      }
      const answer = await this.#calls.unary(controlService.validate, { resource }, context);
      for (const { index, path, message } of answer.problem) problems.push({ index: start + index, path, message });
      for (const wire of answer.resource) valid.push(this.#codec.read(wire));
      start = end;
    }
    return { problems, resources: problems.length > 0 ? [] : valid };
  }

  /** `undefined`: the type cannot tell, or the resource does not exist (then `version` is empty). */
  async readiness(pointer: Pointer): Promise<{ readonly readiness: Readiness; readonly version: string } | undefined> {
    const { namespace, type, id } = pointer;
    const answer = await this.#calls.unary(controlService.readiness, { namespace, type, id }, context);
    if (answer.known === '') return undefined;
    return {
      readiness: { status: answer.status as Readiness['status'], reason: answer.reason, message: answer.message },
      version: answer.version,
    };
  }

  async notes(pointer: Pointer): Promise<readonly ControllerNote[]> {
    const { namespace, type, id } = pointer;
    return (await this.#calls.unary(controlService.notes, { namespace, type, id }, context)).note;
  }

  /** Takes a finalizer away by hand. It is sent once: Ambiguous when the answer was lost. */
  async releaseFinalizer(
    pointer: Pointer,
    request: { readonly finalizer: string; readonly uid: string; readonly by: string },
  ): Promise<ReleaseFinalizerResponse> {
    const { namespace, type, id } = pointer;
    const { finalizer, uid, by } = request;
    return await this.#calls.unary(
      controlService.releaseFinalizer,
      { namespace, type, id, finalizer, uid, by },
      { call: 'update', pointer: { namespace, type, id }, deadlineMs: defaultDeadlineMs },
    );
  }

  /** JSON of the controllers' graph. */
  async graph(): Promise<string> {
    return (await this.#calls.unary(controlService.graph, {}, context)).json;
  }
}

/** So much of a bundle is sent at once, bytes: half of what a server takes. */
const partBytes = 2 * 1024 * 1024;
const context = { call: 'control', deadlineMs: defaultDeadlineMs } as const;
