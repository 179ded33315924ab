import { existsSync } from 'node:fs';
import path from 'node:path';
import { Architecture, Code, LayerVersion } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import { deployedName } from '../../shared/naming.ts';

/** What `scripts/build-media-layer.sh` makes: `bin/ffmpeg` and `bin/ffprobe`. */
const folder = path.join(import.meta.dirname, '..', 'layers', 'media');

/** ffmpeg for the stage that prepares clips; null where the layer was not built: then no clip can be converted. */
export const createMediaLayer = (scope: Construct, deployment: string): LayerVersion | null =>
  existsSync(path.join(folder, 'bin', 'ffmpeg'))
    ? new LayerVersion(scope, 'MediaLayer', {
        layerVersionName: deployedName(deployment, 'media'),
        description: 'ffmpeg and ffprobe for arm64, below /opt/bin',
        code: Code.fromAsset(folder),
        compatibleArchitectures: [Architecture.ARM_64],
        license: 'GPL-3.0-or-later',
      })
    : null;
