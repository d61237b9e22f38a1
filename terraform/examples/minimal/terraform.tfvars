# One ml.g5.xlarge, every default. Without image_digest this builds the foundation only.
endpoint_name = "speech-kokoro-82m"
# image_digest = "sha256:<the digest the image build printed>"
