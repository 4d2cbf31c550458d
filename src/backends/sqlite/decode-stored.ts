import type { Resource } from '../../resource/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type { RecordPlace } from './record-codec.ts';
import { decodeRecord } from './record-codec.ts';

/** The resource of a record whose checksum was right. Throws Corrupt, naming it. */
export function decodeStored(file: string, place: RecordPlace, record: string): Resource {
  try {
    return decodeRecord(place, record);
  } catch (error) {
    const { kind, id } = place;
    throw new SteadystateError(
      'Corrupt',
      `${file} is damaged: the record of ${kind.type}/${kind.namespace}/${id} cannot be read; restore a backup, or repair it`,
      { pointer: { ...kind, id }, cause: error },
    );
  }
}
