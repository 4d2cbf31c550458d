export { protobufCodec } from './protobuf-codec.ts';
