"""Reading and writing of image labels: Label Studio, COCO, YOLO, CSV and folders of pictures."""
