"""Labels of pictures, in and out: Label Studio, COCO, YOLO, CSV and folders of pictures."""
