#!/usr/bin/env bash
# Makes infra/layers/media, the Lambda layer with ffmpeg and ffprobe for arm64, from two npm packages that hold static
# builds (johnvansickle.com, GPL-3.0). Without it the app can be deployed, but no clip can be converted there.
set -euo pipefail
cd "$(dirname "$0")/.."
layer=infra/layers/media
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/bin"
for package in @ffmpeg-installer/linux-arm64@4.1.4 @ffprobe-installer/linux-arm64@5.2.0; do
  archive=$(npm pack --silent --pack-destination "$work" "$package")
  tar -xzf "$work/$archive" -C "$work"
  for program in ffmpeg ffprobe; do
    if [ -f "$work/package/$program" ]; then mv "$work/package/$program" "$work/bin/"; fi
  done
  rm -rf "$work/package"
done
chmod 755 "$work/bin/ffmpeg" "$work/bin/ffprobe"
rm -rf "$layer"
mkdir -p "$layer"
mv "$work/bin" "$layer/"
du -sh "$layer"
